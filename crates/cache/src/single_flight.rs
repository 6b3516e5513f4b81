//! Single-flight fills: concurrent requests for one key share one fill.
//!
//! The first request [starts](SingleFlight::start) a fill and gets a [`FillHandle`], which
//! [completes](FillHandle::complete) it. Later requests [join](Shard::join) it. All of them wait with a
//! [`Waiter`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ahash::RandomState;
use tokio::sync::watch;
use tracing::Span;

use crate::clock::Now;
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::version::Version;
use crate::{CacheKey, CachedResponse, FillError};

pub(crate) type FillResult = Result<CachedResponse, FillError>;
/// Receives the outcome; `None` while the fill is in flight.
type OutcomeReceiver = watch::Receiver<Option<Completed>>;

/// The result of a fill, as all its waiters receive it.
#[derive(Clone)]
pub(crate) struct Completed {
    pub(crate) outcome: FillResult,
    /// Where a response is from.
    pub(crate) answered_by: AnsweredBy,
}

/// Where the response of a fill is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    Redis,
    Store,
    /// The fill failed: an older response from memory.
    Older,
}

impl Completed {
    pub(crate) const fn failed(error: FillError) -> Self {
        Self { outcome: Err(error), answered_by: AnsweredBy::Store }
    }
}

/// The fills in flight, sharded by key. Shards are locked for short moments, never across an await, and only
/// for keys that memory cannot serve.
pub(crate) struct SingleFlight {
    shards: Box<[Mutex<Shard>]>,
}

/// The fills of some of the keys.
#[derive(Default)]
pub(crate) struct Shard {
    in_flight: HashMap<CacheKey, InFlight, RandomState>,
    /// When a read of the key last failed, for keys that have an older response to serve. In milliseconds, see
    /// [`Now::ms`].
    failures_ms: HashMap<CacheKey, i64, RandomState>,
    next_id: u64,
}

struct InFlight {
    id: u64,
    /// The last known version when it started.
    version: Version,
    outcome: OutcomeReceiver,
    span: Span,
}

const SHARDS: usize = 256;
/// How long an older response is served after a failure before the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The number of failures in a shard above which those that are over are removed.
const MANY_FAILURES: usize = 64;

impl SingleFlight {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    pub(crate) fn shard(&self, key: &CacheKey) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(key.shard_byte()) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a fill with this span. It replaces one in flight that may not be [joined](Shard::join) any more.
    pub(crate) fn start(
        self: &Arc<Self>,
        shard: &mut Shard,
        key: CacheKey,
        version: Version,
        span: Span,
    ) -> (FillHandle, OutcomeReceiver) {
        let (sender, receiver) = watch::channel(None);
        let id = shard.next_id;
        shard.next_id += 1;
        shard.in_flight.insert(key, InFlight { id, version, outcome: receiver.clone(), span });
        (FillHandle { fills: Arc::clone(self), key, id, outcome: sender }, receiver)
    }
}

impl Shard {
    /// Joins the fill in flight for a key, if there is one that started at a version which may be joined.
    pub(crate) fn join(&self, key: &CacheKey, may_join: impl FnOnce(Version) -> bool) -> Option<Waiter> {
        let fill = self.in_flight.get(key).filter(|fill| may_join(fill.version))?;
        let joined_span = (!fill.span.is_disabled()).then(|| fill.span.clone());
        Some(Waiter { joined_span, has_started_fill: false, outcome: fill.outcome.clone() })
    }

    /// The version at which the fill in flight for a key started.
    pub(crate) fn in_flight_version(&self, key: &CacheKey) -> Option<Version> {
        self.in_flight.get(key).map(|fill| fill.version)
    }

    /// Whether a read of this key failed within the last second.
    pub(crate) fn failed_recently(&self, key: &CacheKey, now: Now) -> bool {
        self.failures_ms.get(key).is_some_and(|failed_at| now.since(*failed_at) < RETRY_AFTER)
    }

    /// Records that a read of this key failed.
    pub(crate) fn record_failure(&mut self, key: CacheKey, now: Now) {
        if self.failures_ms.len() >= MANY_FAILURES {
            self.failures_ms.retain(|_, failed_at| now.since(*failed_at) < RETRY_AFTER);
        }
        self.failures_ms.insert(key, now.ms);
    }
}

/// Completes a fill. If it is dropped instead, because the fill panicked, all waiters get
/// [`FillError::Abandoned`], and the next request starts another fill.
pub(crate) struct FillHandle {
    fills: Arc<SingleFlight>,
    key: CacheKey,
    id: u64,
    outcome: watch::Sender<Option<Completed>>,
}

impl FillHandle {
    /// Completes the fill. Calls `insert` with the locked shard before another fill for the key can start, and
    /// returns what that returns.
    pub(crate) fn complete<Inserted>(
        self,
        completed: Completed,
        insert: impl FnOnce(&mut Shard) -> Inserted,
    ) -> Inserted {
        let fills = Arc::clone(&self.fills);
        let inserted = {
            let mut shard = fills.shard(&self.key);
            let inserted = insert(&mut shard);
            self.remove_from(&mut shard);
            inserted
        };
        self.outcome.send_replace(Some(completed));
        inserted
    }

    fn remove_from(&self, shard: &mut Shard) {
        if shard.in_flight.get(&self.key).is_some_and(|fill| fill.id == self.id) {
            shard.in_flight.remove(&self.key);
        }
    }
}

impl Drop for FillHandle {
    fn drop(&mut self) {
        let mut shard = self.fills.shard(&self.key);
        self.remove_from(&mut shard);
    }
}

/// Waits for the outcome of a fill.
pub(crate) struct Waiter {
    /// The span of the fill, if another request started it.
    joined_span: Option<Span>,
    has_started_fill: bool,
    outcome: OutcomeReceiver,
}

impl Waiter {
    /// The waiter of the request that started the fill.
    pub(crate) const fn of_started(outcome: OutcomeReceiver) -> Self {
        Self { joined_span: None, has_started_fill: true, outcome }
    }

    /// Whether this request started the fill.
    pub(crate) const fn has_started_fill(&self) -> bool {
        self.has_started_fill
    }

    /// Links the current span to that of the fill that it joined.
    pub(crate) fn link_span(&mut self) {
        // Taken, since a span lasts as long as its last handle.
        if let Some(fill) = self.joined_span.take() {
            Span::current().follows_from(&fill);
        }
    }

    /// Waits until the fill has completed.
    pub(crate) async fn completed(&mut self) -> Completed {
        let completed = self.outcome.wait_for(Option::is_some).await;
        let completed = completed.ok().and_then(|completed| completed.clone());
        completed.unwrap_or_else(|| Completed::failed(FillError::Abandoned))
    }
}
