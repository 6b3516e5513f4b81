//! Fills: how they start, what their requests wait for, and how they complete.

use std::sync::Arc;
use std::time::Duration;

use chart_index_instrumentation::{child_span, set_current_as_parent};
use chart_index_permits::Announced;
use tracing::{Instrument, Span, debug_span, field};

use crate::freshness::Freshness;
use crate::metrics::{FillOutcome, Read};
use crate::read_start::ReadStart;
use crate::read_through::ReadThrough;
use crate::redis_record::Record;
use crate::redis_tier::NewRecord;
use crate::redis_writes::QueuedWrite;
use crate::single_flight::{Completed, FillHandle, FillResult, Origin, Waiter};
use crate::{CacheKey, CachedResponse, FillError, Kind};

/// Where a response that is not in memory is read from.
#[derive(Debug)]
pub(crate) enum FillSource {
    RedisThenStore,
    /// The store, for which the fill may have been announced.
    Store(Option<Announced>),
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Request,
    /// Nothing waits: the stale response is served meanwhile.
    Refresh,
}

/// How a request that missed in memory goes on.
enum Joined<E> {
    Cached(CachedResponse),
    Fill(Waiter<E>),
}

impl<E: Send + Sync + 'static> ReadThrough<E> {
    /// Waits for the fill in flight, or starts one. Falls back to an older response if the fill fails or takes
    /// too long.
    pub(crate) async fn fetch<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: FillSource,
        fill: F,
    ) -> FillResult<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let kind = key.kind();
        let Some(_waiting) = self.limits.try_acquire_waiter(kind) else {
            return self.shed(&key);
        };
        match self.join_or_start(key, source, Purpose::Request, fill) {
            Joined::Cached(response) => {
                self.metrics.count(kind, Read::Joined);
                Ok(response)
            }
            Joined::Fill(mut waiter) => {
                waiter.link_span();
                self.count_outcome(kind, waiter.runs_fill(), self.wait(key, waiter)).await
            }
        }
    }

    /// The outcome of a request that may not wait for a fill: an older response or an error.
    pub(crate) fn shed(&self, key: &CacheKey) -> FillResult<E> {
        self.metrics.shed.add(1);
        let older = self.fallback(key);
        self.metrics.count(key.kind(), if older.is_some() { Read::Older } else { Read::Error });
        older.ok_or(FillError::Overloaded)
    }

    /// Waits for a fill. Falls back to an older response if it fails or takes too long.
    async fn wait(&self, key: CacheKey, mut waiter: Waiter<E>) -> Completed<E> {
        if self.fallback(&key).is_none() {
            return waiter.completed().await;
        }
        let completed = tokio::time::timeout(self.fallback_timeout, waiter.completed()).await;
        match (completed, self.fallback(&key)) {
            (Ok(completed), _) if completed.outcome.is_ok() => completed,
            (Ok(_) | Err(_), Some(older)) => {
                self.fills.shard(&key).record_failure(key, self.clock.now().coarse);
                Completed { outcome: Ok(older), origin: Origin::Older }
            }
            (Ok(failed), None) => failed,
            // The older response was invalidated during the wait.
            (Err(_), None) => waiter.completed().await,
        }
    }

    /// Counts a request by the outcome of its wait for a fill. A request that is dropped before counts as a
    /// success.
    async fn count_outcome(
        &self,
        kind: Kind,
        runs_fill: bool,
        completed: impl Future<Output = Completed<E>>,
    ) -> FillResult<E> {
        let succeeded = if runs_fill { Read::Filled } else { Read::Joined };
        let mut count = self.metrics.count_on_drop(kind, succeeded);
        let Completed { outcome, origin } = completed.await;
        count.read = match (&outcome, origin) {
            (Err(_), _) => Some(Read::Error),
            (Ok(_), Origin::Older) => Some(Read::Older),
            // The store was not read.
            (Ok(_), Origin::Redis) if runs_fill => None,
            (Ok(_), Origin::Redis | Origin::Store) => Some(succeeded),
        };
        outcome
    }

    /// Starts a fill in the background, unless one is in flight or failed recently. It fails if no permit is
    /// free: the requests that wait for permits have no response yet.
    pub(crate) fn refresh<F, Fut>(self: &Arc<Self>, key: CacheKey, source: FillSource, fill: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        if !self.failed_recently(&key)
            && let Joined::Fill(mut waiter) = self.join_or_start(key, source, Purpose::Refresh, fill)
            && waiter.runs_fill()
        {
            let this = Arc::clone(self);
            tokio::spawn(
                async move { this.count_outcome(key.kind(), true, waiter.completed()).await.map(drop) },
            );
        }
    }

    /// Joins the fill in flight or starts one, unless a fresh response was cached in the meantime.
    fn join_or_start<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: FillSource,
        purpose: Purpose,
        fill: F,
    ) -> Joined<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let (handle, outcome, span) = {
            let mut shard = self.fills.shard(&key);
            if let Some(waiter) = shard.join(&key) {
                return Joined::Fill(waiter);
            }
            if let Some((response, Freshness::Fresh)) = self.get_any(&key) {
                return Joined::Cached(response);
            }
            let span = fill_span(key.kind());
            let (handle, outcome) = self.fills.start(&mut shard, key, span.clone());
            (handle, outcome, span)
        };
        let start = self.read_start(handle.invalidations);
        let this = Arc::clone(self);
        let fill = async move { this.run(key, (source, purpose), start, handle, fill).await };
        Joined::Fill(Waiter::with_fill(outcome, fill.instrument(span)))
    }

    /// Runs a fill to its completion.
    async fn run<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        (source, purpose): (FillSource, Purpose),
        start: ReadStart,
        handle: FillHandle<E>,
        fill: F,
    ) where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<CachedResponse, E>>,
    {
        let free_permit = match purpose {
            Purpose::Request => None,
            Purpose::Refresh => match self.limits.try_acquire_fill(key.kind()) {
                Some(permit) => Some(permit),
                None => return self.fail(key, FillError::Overloaded, handle),
            },
        };
        let announced = match source {
            FillSource::Store(announced) => announced,
            FillSource::RedisThenStore => {
                let record = self.redis.get(&key).await;
                if let Some((response, Freshness::Fresh)) = self.insert_record(key, record, start) {
                    record_outcome(FillOutcome::of(&response));
                    handle.complete(Completed { outcome: Ok(response), origin: Origin::Redis }, |_| true);
                    return;
                }
                None
            }
        };
        let permit = match free_permit {
            Some(permit) => Some(permit),
            None => self.limits.acquire_fill(key.kind(), announced).await,
        };
        let Some(_permit) = permit else {
            self.metrics.shed.add(1);
            return self.fail(key, FillError::Overloaded, handle);
        };
        let start = self.read_start(start.invalidations);
        match self.read_store(key.kind(), fill()).await {
            Ok(response) => self.complete(key, response, start, handle),
            Err(error) => self.fail(key, error, handle),
        }
    }

    /// Reads the store, and records the duration and the outcome.
    async fn read_store(
        &self,
        kind: Kind,
        fill: impl Future<Output = Result<CachedResponse, E>>,
    ) -> FillResult<E> {
        let mut timer = self.metrics.start_fill(kind);
        let outcome = match tokio::time::timeout(self.fill_timeout, fill).await {
            Ok(read) => read.map_err(|error| FillError::Failed(Arc::new(error))),
            Err(_) => Err(FillError::TimedOut),
        };
        timer.outcome = match &outcome {
            Ok(response) => FillOutcome::of(response),
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
        response: CachedResponse,
        start: ReadStart,
        handle: FillHandle<E>,
    ) {
        let response = self.memory.reuse(&key, response);
        let timestamps = start.timestamps();
        let completed = Completed { outcome: Ok(response.clone()), origin: Origin::Store };
        let inserted = handle.complete(completed, |shard| {
            self.insert(shard, key, response.clone(), timestamps, start.invalidations)
        });
        if inserted && !self.redis.is_unavailable(key.kind()) {
            self.write_to_redis(key.kind(), [QueuedWrite { key, response, start }]);
        }
    }

    /// Writes responses of one kind to Redis in the background.
    pub(crate) fn write_to_redis(
        self: &Arc<Self>,
        kind: Kind,
        writes: impl IntoIterator<Item = QueuedWrite>,
    ) {
        let pushed = self.redis.writes(kind).push(writes);
        self.metrics.dropped_writes.add(pushed.dropped as u64);
        if let Some(mut writer) = pushed.writer {
            let this = Arc::clone(self);
            // In a task, so that the waiters do not wait for the encoding either.
            tokio::spawn(async move {
                while let Some(writes) = writer.next() {
                    let records: Vec<_> = writes.into_iter().map(|write| this.new_record(write)).collect();
                    this.redis.insert(this.redis.connection(kind), &records).await;
                }
            });
        }
    }

    fn new_record(&self, write: QueuedWrite) -> NewRecord {
        let QueuedWrite { key, response, start } = write;
        let ttl = self.freshness.jittered(&key, self.lifetimes.get(key.kind()).revalidate_after);
        let generation = start.generation.map(|current| current.generation);
        let database = start.generation.map(|current| current.database);
        let record = Record { response, read_unix_ms: start.unix_ms, generation, database };
        let age = Duration::from_millis(self.clock.now().real_ms - start.now.real_ms);
        NewRecord { key, record, ttl, age }
    }

    /// Completes a fill that failed: with an older response, or with the error if there is none.
    fn fail(&self, key: CacheKey, error: FillError<E>, handle: FillHandle<E>) {
        let older = self.fallback(&key);
        let has_fallback = older.is_some();
        let older = older.map(|older| Completed { outcome: Ok(older), origin: Origin::Older });
        handle.complete(older.unwrap_or_else(|| Completed::failed(error)), |shard| {
            if has_fallback {
                shard.record_failure(key, self.clock.now().coarse);
            }
            false
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
            "chart_index.cache.group" = kind.as_str(),
            "chart_index.outcome" = field::Empty
        );
        set_current_as_parent(&span);
        span
    })
}

/// Records the outcome of the fill in its span, the current one.
fn record_outcome(outcome: FillOutcome) {
    Span::current().record("chart_index.outcome", outcome.as_str());
}
