//! Fills: how they start, what their requests wait for, and how they complete.

use std::sync::Arc;

use chart_index_domain::ReadError;
use chart_index_instrumentation::{child_span, set_current_as_parent};
use tracing::{Instrument, Span, debug_span, field};

use crate::freshness::{Freshness, Timestamps};
use crate::metrics::{FillOutcome, Read};
use crate::redis_record::Record;
use crate::redis_tier::NewRecord;
use crate::redis_writes::{MAX_QUEUED, QueuedWrite};
use crate::single_flight::{AnsweredBy, Completed, FillHandle, FillResult, Waiter};
use crate::sync::spawn;
use crate::{Cache, CacheKey, CachedResponse, FillError, Filled, Kind};

/// Why a fill is started.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// Requests wait for the response.
    Request,
    /// Nothing waits: a stale response is served meanwhile.
    Refresh,
}

/// How a request that missed in memory goes on.
enum Joined {
    Cached(CachedResponse),
    Fill(Waiter),
}

impl Cache {
    /// Waits for the fill in flight, or starts one. Falls back to an older response if the fill fails or takes
    /// too long.
    pub(crate) async fn fetch<F, Fut>(self: &Arc<Self>, key: CacheKey, fill: F) -> FillResult
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Filled, ReadError>> + Send + 'static,
    {
        let kind = key.kind();
        let Some(_waiting) = self.limits.try_acquire_waiter(kind) else {
            return self.shed(&key);
        };
        // At once, since a rejection must cost little.
        if !self.is_in_flight(&key) && self.limits.rejects_fills(kind) {
            return self.shed(&key);
        }
        match self.join_or_start(key, Purpose::Request, fill) {
            Joined::Cached(response) => {
                self.metrics.count(kind, Read::Joined);
                Ok(response)
            }
            Joined::Fill(mut waiter) => {
                waiter.link_span();
                self.count_outcome(kind, waiter.has_started_fill(), self.wait(key, waiter)).await
            }
        }
    }

    /// The outcome of a request that may not wait for a fill: an older response or an error.
    fn shed(&self, key: &CacheKey) -> FillResult {
        self.metrics.shed.add(1);
        let older = self.fallback(key);
        self.metrics.count(key.kind(), if older.is_some() { Read::Older } else { Read::Error });
        older.ok_or(FillError::Overloaded)
    }

    /// Waits for a fill. Falls back to an older response if it fails or takes too long.
    async fn wait(&self, key: CacheKey, mut waiter: Waiter) -> Completed {
        let completed = tokio::time::timeout(self.fallback_timeout, waiter.completed()).await;
        match (completed, self.fallback(&key)) {
            (Ok(completed), _) if completed.outcome.is_ok() => completed,
            (Ok(_) | Err(_), Some(older)) => {
                self.fills.shard(&key).record_failure(key, self.clock.now());
                Completed { outcome: Ok(older), answered_by: AnsweredBy::Older }
            }
            (Ok(failed), None) => failed,
            // There is no older response, or it has expired during the wait.
            (Err(_), None) => waiter.completed().await,
        }
    }

    /// Counts a request by the outcome of its wait for a fill.
    async fn count_outcome(
        &self,
        kind: Kind,
        has_started_fill: bool,
        completed: impl Future<Output = Completed>,
    ) -> FillResult {
        let succeeded = if has_started_fill { Read::Filled } else { Read::Joined };
        let mut count = self.metrics.count_on_drop(kind, Read::Dropped);
        let Completed { outcome, answered_by } = completed.await;
        count.read = match (&outcome, answered_by) {
            (Err(_), _) => Some(Read::Error),
            (Ok(_), AnsweredBy::Older) => Some(Read::Older),
            // The store was not read.
            (Ok(_), AnsweredBy::Redis) if has_started_fill => None,
            (Ok(_), AnsweredBy::Redis | AnsweredBy::Store) => Some(succeeded),
        };
        outcome
    }

    /// Starts a fill in the background, unless one is in flight or failed recently. It fails if no permit is
    /// free: the requests that wait for permits have no response yet.
    pub(crate) fn refresh<F, Fut>(self: &Arc<Self>, key: CacheKey, fill: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Filled, ReadError>> + Send + 'static,
    {
        if !self.failed_recently(&key) {
            self.join_or_start(key, Purpose::Refresh, fill);
        }
    }

    /// Joins the fill in flight or starts one, unless a fresh response was cached in the meantime.
    fn join_or_start<F, Fut>(self: &Arc<Self>, key: CacheKey, purpose: Purpose, fill: F) -> Joined
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Filled, ReadError>> + Send + 'static,
    {
        let (handle, outcome, span) = {
            let mut shard = self.fills.shard(&key);
            if let Some(waiter) = shard.join(&key, |version| self.may_join(&key, version)) {
                return Joined::Fill(waiter);
            }
            if let Some((response, Freshness::Fresh)) = self.get_any(&key) {
                return Joined::Cached(response);
            }
            let span = fill_span(key.kind());
            let version = self.rules.changes.version();
            let (handle, outcome) = self.fills.start(&mut shard, key, version, span.clone());
            (handle, outcome, span)
        };
        let this = Arc::clone(self);
        // A task of its own, since it goes on if this request is dropped: others may have joined it.
        spawn(async move { this.run(key, purpose, handle, fill).await }.instrument(span));
        Joined::Fill(Waiter::of_started(outcome))
    }

    /// Runs a fill to its completion: reads Redis, and then the store.
    async fn run<F, Fut>(self: &Arc<Self>, key: CacheKey, purpose: Purpose, handle: FillHandle, fill: F)
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Filled, ReadError>>,
    {
        let record = self.redis.get(&key).await;
        if let Some((response, Freshness::Fresh)) = self.insert_record(key, record) {
            record_outcome(FillOutcome::of(&response));
            handle.complete(Completed { outcome: Ok(response), answered_by: AnsweredBy::Redis }, |_| ());
            return;
        }
        let permit = match purpose {
            Purpose::Request => self.limits.acquire_fill(key.kind()).await,
            Purpose::Refresh => self.limits.try_acquire_fill(key.kind()),
        };
        let Some(_permit) = permit else {
            self.metrics.shed.add(1);
            return self.fail(key, FillError::Overloaded, handle);
        };
        let start = self.start_read();
        match self.read_store(key.kind(), fill()).await {
            Ok(filled) => {
                // No request counts it. If it failed, none would have an older response instead of its own.
                if matches!(purpose, Purpose::Refresh) {
                    self.metrics.count(key.kind(), Read::Filled);
                }
                self.complete(key, filled, start, handle);
            }
            Err(error) => self.fail(key, error, handle),
        }
    }

    /// Reads the store, and records the duration and the outcome.
    async fn read_store(
        &self,
        kind: Kind,
        fill: impl Future<Output = Result<Filled, ReadError>>,
    ) -> Result<Filled, FillError> {
        let mut timer = self.metrics.start_fill(kind);
        let outcome = match tokio::time::timeout(self.fill_timeout, fill).await {
            Ok(read) => read.map_err(|error| FillError::Failed(Arc::new(error))),
            Err(_) => Err(FillError::TimedOut),
        };
        timer.outcome = match &outcome {
            Ok(filled) => FillOutcome::of(&filled.response),
            Err(FillError::TimedOut) => FillOutcome::Timeout,
            Err(_) => FillOutcome::Error,
        };
        record_outcome(timer.outcome);
        outcome
    }

    /// Completes a fill: caches the response in memory, wakes the waiters, and writes it to Redis in the
    /// background.
    fn complete(
        self: &Arc<Self>,
        key: CacheKey,
        Filled { response, position }: Filled,
        start: Timestamps,
        handle: FillHandle,
    ) {
        let response = self.memory.reuse(&key, response);
        let version = position.map_or(start.version, |position| {
            // Of another origin, it is unknown, which is lower than any other version.
            start.version.min(self.rules.changes.version_of(position))
        });
        let timestamps = Timestamps { version, ..start };
        let completed = Completed { outcome: Ok(response.clone()), answered_by: AnsweredBy::Store };
        let is_latest =
            handle.complete(completed, |shard| self.insert_read(shard, key, response.clone(), timestamps));
        if is_latest {
            self.write_to_redis([QueuedWrite { key, response, timestamps }], MAX_QUEUED);
        }
    }

    /// Writes responses to Redis in the background, and drops those for which a queue of `max_queued` or Redis
    /// has no room.
    pub(crate) fn write_to_redis(
        self: &Arc<Self>,
        writes: impl IntoIterator<Item = QueuedWrite>,
        max_queued: usize,
    ) {
        if self.redis.is_unavailable() {
            return;
        }
        if self.redis.is_full() {
            return self.metrics.dropped_writes.add(writes.into_iter().count() as u64);
        }
        let pushed = self.redis.writes.push(writes, max_queued);
        self.metrics.dropped_writes.add(pushed.dropped as u64);
        if let Some(mut writer) = pushed.writer {
            let this = Arc::clone(self);
            // In a task, so that the waiters do not wait for the encoding either.
            spawn(async move {
                while let Some(writes) = writer.next() {
                    let records: Vec<_> = writes.into_iter().map(|write| this.new_record(write)).collect();
                    let dropped = this.redis.write(&records).await;
                    this.metrics.dropped_writes.add(dropped as u64);
                }
            });
        }
    }

    fn new_record(&self, write: QueuedWrite) -> NewRecord {
        let QueuedWrite { key, response, timestamps } = write;
        let age = self.clock.now().since(timestamps.read_at_ms);
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let read_unix_ms = self.clock.unix_ms().saturating_sub(age_ms);
        let position = self.rules.changes.position_of(timestamps.version);
        let ttl = self.rules.jittered(&key, self.rules.lifetimes.expire_after);
        NewRecord { key, record: Record { response, read_unix_ms, position }, ttl }
    }

    /// Completes a fill that failed: with an older response, or with the error if there is none.
    fn fail(&self, key: CacheKey, error: FillError, handle: FillHandle) {
        let older = self.fallback(&key);
        let has_fallback = older.is_some();
        let older = older.map(|older| Completed { outcome: Ok(older), answered_by: AnsweredBy::Older });
        handle.complete(older.unwrap_or_else(|| Completed::failed(error)), |shard| {
            if has_fallback {
                shard.record_failure(key, self.clock.now());
            }
        });
    }
}

/// The span of a fill, the child of the current one. It has no span unless there is a current one.
///
/// Requests that join the fill link to this span. It may outlive its parent: a fill continues when its request
/// is dropped or gets an older response, and that for a stale response starts when the request has its
/// response.
fn fill_span(kind: Kind) -> Span {
    child_span(|| {
        let span = debug_span!(
            parent: None,
            "fill",
            "chart_index.cache.group" = Kind::GROUPS[kind.group()],
            "chart_index.outcome" = field::Empty
        );
        set_current_as_parent(&span);
        span
    })
}

/// Records the outcome of the fill in its span, the current one.
fn record_outcome(outcome: FillOutcome) {
    Span::current().record("chart_index.outcome", outcome.into_str());
}
