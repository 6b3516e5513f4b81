//! Reads through memory and Redis to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::clock::Now;
use crate::fill_limits::FillLimits;
use crate::freshness::{Freshness, FreshnessTracker, Timestamps};
use crate::generation::{CurrentGeneration, LocalGenerationId};
use crate::memory_tier::MemoryTier;
use crate::redis_record::Record;
use crate::redis_tier::RedisTier;
use crate::single_flight::{FillHandle, Outcome, Shard, SingleFlight, Waiter};
use crate::{
    CacheConfig, CacheConnections, CacheKey, CacheStats, CachedBody, CachedResponse, Clock, FillError,
    LifetimesByKind, MemoryLookup,
};

/// Where a response that is not in memory is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillSource {
    RedisThenStore,
    Store,
}

/// What a request that missed in memory waits for.
enum Joined<E> {
    /// Nothing: the response was cached in the meantime.
    Cached(CachedResponse),
    /// A fill in flight.
    Fill(Waiter<E>),
}

/// The two tiers, and the fills behind them.
pub(crate) struct ReadThrough<E> {
    memory: MemoryTier,
    pub(crate) redis: RedisTier,
    fills: Arc<SingleFlight<E>>,
    freshness: FreshnessTracker,
    clock: Clock,
    lifetimes: LifetimesByKind,
    fallback_timeout: Duration,
    fill_timeout: Duration,
    limits: FillLimits,
    /// Permits for writes to Redis.
    writes: Arc<Semaphore>,
    counters: Counters,
}

/// The maximum number of writes to Redis in flight.
const MAX_WRITES: usize = 1_024;

#[derive(Debug, Default)]
struct Counters {
    from_memory: AtomicU64,
    from_redis: AtomicU64,
    fills: AtomicU64,
    failed_fills: AtomicU64,
    shed: AtomicU64,
    dropped_writes: AtomicU64,
}

/// The state in which a read started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadStart {
    now: Now,
    unix_ms: u64,
    generation: Option<CurrentGeneration>,
    /// [`Shard::invalidations`] of the key.
    invalidations: u64,
}

impl<E: Send + Sync + 'static> ReadThrough<E> {
    pub(crate) fn new(config: CacheConfig, connections: CacheConnections) -> Self {
        Self {
            memory: MemoryTier::with_capacity(config.bytes),
            limits: FillLimits::new(&config),
            redis: RedisTier::new(connections, config.key_prefix),
            fills: Arc::new(SingleFlight::new()),
            freshness: FreshnessTracker::new(config.catalogue),
            clock: config.clock,
            lifetimes: config.lifetimes,
            fallback_timeout: config.fallback_timeout,
            fill_timeout: config.fill_timeout,
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            counters: Counters::default(),
        }
    }

    /// Looks in memory for a response that may be served now.
    pub(crate) fn get(&self, key: &CacheKey) -> MemoryLookup {
        let Some((response, freshness)) = self.get_any(key) else { return MemoryLookup::Miss };
        let lookup = match freshness {
            Freshness::Fresh => MemoryLookup::Fresh(response),
            Freshness::Stale => MemoryLookup::Stale(response),
            Freshness::MustRevalidate if self.failed_recently(key) => MemoryLookup::Stale(response),
            Freshness::MustRevalidate | Freshness::Expired => return MemoryLookup::Miss,
        };
        self.counters.from_memory.fetch_add(1, Ordering::Relaxed);
        lookup
    }

    /// Waits for the fill in flight, or starts one. Falls back to an older response if the fill fails or takes too
    /// long.
    pub(crate) async fn fetch<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: FillSource,
        fill: F,
    ) -> Outcome<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let Some(_waiting) = self.limits.waiting(key.kind()) else {
            self.counters.shed.fetch_add(1, Ordering::Relaxed);
            return self.fallback(&key).ok_or(FillError::Overloaded);
        };
        let mut waiter = match self.join_or_start(key, source, fill) {
            Joined::Cached(response) => return Ok(response),
            Joined::Fill(waiter) => waiter,
        };
        if self.fallback(&key).is_none() {
            return waiter.outcome().await;
        }
        let outcome = tokio::time::timeout(self.fallback_timeout, waiter.outcome()).await;
        match (outcome, self.fallback(&key)) {
            (Ok(Ok(response)), _) => Ok(response),
            (Ok(Err(_)) | Err(_), Some(older)) => {
                self.fills.shard(&key).record_failure(key, self.clock.now().coarse);
                Ok(older)
            }
            (Ok(failed), None) => failed,
            // The older response was invalidated during the wait.
            (Err(_), None) => waiter.outcome().await,
        }
    }

    /// Starts a fill in the background, unless one is in flight or failed recently.
    pub(crate) fn refresh<F, Fut>(self: &Arc<Self>, key: CacheKey, source: FillSource, fill: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        if !self.failed_recently(&key) {
            // A fill whose waiter is dropped continues in a task.
            drop(self.join_or_start(key, source, fill));
        }
    }

    /// Joins the fill in flight or starts one, unless a fresh response was cached in the meantime.
    fn join_or_start<F, Fut>(self: &Arc<Self>, key: CacheKey, source: FillSource, fill: F) -> Joined<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let (handle, outcome) = {
            let mut shard = self.fills.shard(&key);
            if let Some(waiter) = shard.join(&key) {
                return Joined::Fill(waiter);
            }
            if let Some((response, Freshness::Fresh)) = self.get_any(&key) {
                return Joined::Cached(response);
            }
            self.fills.start(&mut shard, key)
        };
        let start = self.read_start(handle.invalidations);
        let this = Arc::clone(self);
        let fill = async move { this.run(key, source, start, handle, fill).await };
        Joined::Fill(Waiter::with_fill(outcome, fill))
    }

    /// Runs a fill to its completion.
    async fn run<F, Fut>(
        self: &Arc<Self>,
        key: CacheKey,
        source: FillSource,
        start: ReadStart,
        handle: FillHandle<E>,
        fill: F,
    ) where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<CachedResponse, E>>,
    {
        if source == FillSource::RedisThenStore
            && let Some(record) = self.redis.get(&key).await
            && let (response, Freshness::Fresh) = self.insert_record(key, record, start)
        {
            handle.complete(Ok(response), |_| true);
            return;
        }
        let Some(_permit) = self.limits.fill(key.kind()).await else {
            self.counters.shed.fetch_add(1, Ordering::Relaxed);
            return self.fail(key, FillError::Overloaded, handle);
        };
        self.counters.fills.fetch_add(1, Ordering::Relaxed);
        let start = self.read_start(start.invalidations);
        let error = match tokio::time::timeout(self.fill_timeout, fill()).await {
            Ok(Ok(response)) => return self.complete(key, response, start, handle),
            Ok(Err(error)) => FillError::Failed(Arc::new(error)),
            Err(_) => FillError::TimedOut,
        };
        self.counters.failed_fills.fetch_add(1, Ordering::Relaxed);
        self.fail(key, error, handle);
    }

    /// A read that starts now.
    fn read_start(&self, invalidations: u64) -> ReadStart {
        let generation = self.freshness.generations.current();
        ReadStart { now: self.clock.now(), unix_ms: self.clock.unix_ms(), generation, invalidations }
    }

    /// Completes a fill: caches the response in memory, wakes the waiters, and writes it to Redis in the background.
    fn complete(
        self: &Arc<Self>,
        key: CacheKey,
        response: CachedResponse,
        start: ReadStart,
        handle: FillHandle<E>,
    ) {
        let response = self.memory.reuse(&key, response);
        let generation = start.generation.map_or(LocalGenerationId::UNKNOWN, |current| current.local_id);
        let read_at = start.now.coarse;
        let timestamps = Timestamps { read_at, checked_at: read_at, generation };
        let inserted = handle.complete(Ok(response.clone()), |shard| {
            self.insert(shard, key, response.clone(), timestamps, start.invalidations)
        });
        if inserted && !self.redis.is_unavailable(key.kind()) {
            self.write_to_redis(key, response, start);
        }
    }

    fn write_to_redis(self: &Arc<Self>, key: CacheKey, response: CachedResponse, start: ReadStart) {
        let ttl = self.freshness.jittered(&key, self.lifetimes.get(key.kind()).revalidate_after);
        let generation = start.generation.map(|current| current.generation);
        let record = Record { response, read_unix_ms: start.unix_ms, generation };
        // When Redis or this process falls behind, a dropped write costs another replica a read. A queue without a
        // limit would cost all requests memory and time.
        let Ok(permit) = Arc::clone(&self.writes).try_acquire_owned() else {
            self.counters.dropped_writes.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let this = Arc::clone(self);
        // In a task, so that the waiters do not wait for the encoding either.
        tokio::spawn(async move {
            let _permit = permit;
            let read_duration = Duration::from_millis(this.clock.now().real_ms - start.now.real_ms);
            this.redis.insert(&key, &record, read_duration, ttl).await;
        });
    }

    /// Completes a fill that failed: with an older response, or with the error if there is none.
    fn fail(&self, key: CacheKey, error: FillError<E>, handle: FillHandle<E>) {
        let older = self.fallback(&key);
        let has_fallback = older.is_some();
        handle.complete(older.ok_or(error), |shard| {
            if has_fallback {
                shard.record_failure(key, self.clock.now().coarse);
            }
            false
        });
    }

    /// Starts a read outside of a fill; `None` if a fill is in flight, which should be joined instead.
    pub(crate) fn start_read(&self, key: &CacheKey) -> Option<ReadStart> {
        let start = self.read_start(0);
        let shard = self.fills.shard(key);
        (!shard.is_in_flight(key)).then(|| ReadStart { invalidations: shard.invalidations, ..start })
    }

    /// Inserts a response from Redis into memory with its age.
    pub(crate) fn insert_record(
        &self,
        key: CacheKey,
        record: Record,
        start: ReadStart,
    ) -> (CachedResponse, Freshness) {
        self.counters.from_redis.fetch_add(1, Ordering::Relaxed);
        let age = Duration::from_millis(start.unix_ms.saturating_sub(record.read_unix_ms));
        let generation = self.freshness.generations.local_id_of(record.generation);
        let now = start.now.coarse;
        let timestamps = Timestamps { read_at: now.before(age), checked_at: now, generation };
        let response = self.memory.reuse(&key, record.response);
        let mut shard = self.fills.shard(&key);
        self.insert(&mut shard, key, response.clone(), timestamps, start.invalidations);
        let lifetimes = self.lifetimes.get(key.kind());
        let freshness = self.freshness.freshness(&key, timestamps, lifetimes, start.now);
        (response, freshness)
    }

    /// Inserts a response into memory, unless its key was invalidated after the read started.
    fn insert(
        &self,
        shard: &mut Shard<E>,
        key: CacheKey,
        response: CachedResponse,
        timestamps: Timestamps,
        invalidations: u64,
    ) -> bool {
        let is_valid = shard.invalidations == invalidations;
        if is_valid {
            self.memory.insert(key, response, timestamps);
        }
        is_valid
    }

    /// The entry in memory, whatever its freshness.
    fn get_any(&self, key: &CacheKey) -> Option<(CachedResponse, Freshness)> {
        let (response, timestamps) = self.memory.get(key)?;
        let lifetimes = self.lifetimes.get(key.kind());
        Some((response, self.freshness.freshness(key, timestamps, lifetimes, self.clock.now())))
    }

    /// The response to serve if a read fails.
    fn fallback(&self, key: &CacheKey) -> Option<CachedResponse> {
        let entry = self.get_any(key).filter(|(_, freshness)| *freshness != Freshness::Expired);
        entry.map(|(response, _)| response)
    }

    fn failed_recently(&self, key: &CacheKey) -> bool {
        let now = self.clock.now().coarse;
        self.fills.shard(key).failed_recently(key, now)
    }

    /// Removes entries from memory, and keeps reads in flight from bringing them back.
    pub(crate) fn invalidate(&self, keys: &[CacheKey]) {
        for key in keys {
            let mut shard = self.fills.shard(key);
            shard.invalidate(key);
            self.memory.remove(key);
        }
    }

    /// Updates the accounted size of a body that was compressed after it was cached.
    pub(crate) fn update_size(&self, key: &CacheKey, body: &CachedBody) {
        let _shard = self.fills.shard(key);
        self.memory.update_size(*key, body);
    }

    /// Starts to listen for invalidations. Everything that was read before must be revalidated: invalidations may
    /// have been missed.
    pub(crate) fn start_listening(&self) {
        self.freshness.start_listening(self.clock.now());
        self.fills.invalidate_all();
    }

    /// Records that invalidations are still received.
    pub(crate) fn confirm_listening(&self) {
        self.freshness.confirm_listening(self.clock.now());
    }

    /// Whether invalidations are received now.
    pub(crate) fn is_listening(&self) -> bool {
        self.freshness.is_listening(self.clock.now())
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let counters = &self.counters;
        let (bytes, found_entries, not_found_entries) = self.memory.size();
        CacheStats {
            from_memory: counters.from_memory.load(Ordering::Relaxed),
            from_redis: counters.from_redis.load(Ordering::Relaxed),
            fills: counters.fills.load(Ordering::Relaxed),
            failed_fills: counters.failed_fills.load(Ordering::Relaxed),
            shed: counters.shed.load(Ordering::Relaxed),
            dropped_writes: counters.dropped_writes.load(Ordering::Relaxed),
            bytes,
            found_entries,
            not_found_entries,
        }
    }
}
