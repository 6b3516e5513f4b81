//! The two tiers: lookups, insertion, invalidation.

use std::sync::Arc;
use std::time::Duration;

use crate::fill_limits::FillLimits;
use crate::freshness::{Freshness, FreshnessTracker, Timestamps};
use crate::memory_tier::MemoryTier;
use crate::metrics::{CacheMetrics, Observed, Read};
use crate::read_start::ReadStart;
use crate::redis_record::Record;
use crate::redis_tier::RedisTier;
use crate::single_flight::{Shard, SingleFlight};
use crate::{
    CacheConfig, CacheConnections, CacheKey, CacheStats, CachedBody, CachedResponse, Clock, LifetimesByKind,
    MemoryLookup,
};

/// The two tiers, and the fills behind them.
pub(crate) struct ReadThrough<E> {
    pub(crate) memory: MemoryTier,
    pub(crate) redis: RedisTier,
    pub(crate) fills: Arc<SingleFlight<E>>,
    pub(crate) freshness: FreshnessTracker,
    pub(crate) clock: Clock,
    pub(crate) lifetimes: LifetimesByKind,
    pub(crate) fallback_timeout: Duration,
    pub(crate) fill_timeout: Duration,
    pub(crate) limits: FillLimits,
    pub(crate) metrics: CacheMetrics,
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
            metrics: CacheMetrics::new(),
        }
    }

    /// Looks in memory for a response that may be served now.
    pub(crate) fn get(&self, key: &CacheKey) -> MemoryLookup {
        let (lookup, read) = match self.get_any(key) {
            Some((response, Freshness::Fresh)) => (MemoryLookup::Fresh(response), Read::MemoryHit),
            Some((response, Freshness::Stale)) => (MemoryLookup::Stale(response), Read::MemoryStale),
            Some((response, Freshness::MustRevalidate)) if self.failed_recently(key) => {
                (MemoryLookup::Stale(response), Read::MemoryStale)
            }
            Some((_, Freshness::MustRevalidate | Freshness::Expired)) | None => {
                (MemoryLookup::Miss, Read::MemoryMiss)
            }
        };
        self.metrics.count(key.kind(), read);
        lookup
    }

    pub(crate) fn read_start(&self, invalidations: u64) -> ReadStart {
        let generation = self.freshness.generations.current();
        ReadStart { now: self.clock.now(), unix_ms: self.clock.unix_ms(), generation, invalidations }
    }

    /// Starts a read outside of a fill; `None` if a fill is in flight, which should be joined instead.
    pub(crate) fn start_read(&self, key: &CacheKey) -> Option<ReadStart> {
        let start = self.read_start(0);
        let shard = self.fills.shard(key);
        (!shard.is_in_flight(key)).then(|| ReadStart { invalidations: shard.invalidations, ..start })
    }

    /// Inserts a response that Redis may have into memory with its age, and counts the read.
    pub(crate) fn insert_record(
        &self,
        key: CacheKey,
        record: Option<Record>,
        start: ReadStart,
    ) -> Option<(CachedResponse, Freshness)> {
        let inserted = record.map(|record| self.insert_found_record(key, record, start));
        if self.redis.connection(key.kind()).is_configured() {
            let read = match inserted {
                Some((_, Freshness::Fresh)) => Read::RedisHit,
                Some((_, Freshness::Stale)) => Read::RedisStale,
                Some((_, Freshness::MustRevalidate | Freshness::Expired)) | None => Read::RedisMiss,
            };
            self.metrics.count(key.kind(), read);
        }
        inserted
    }

    fn insert_found_record(
        &self,
        key: CacheKey,
        record: Record,
        start: ReadStart,
    ) -> (CachedResponse, Freshness) {
        let age = Duration::from_millis(start.unix_ms.saturating_sub(record.read_unix_ms));
        let generation = self.freshness.generations.local_id_of(record.generation);
        let now = start.now.coarse;
        let checked_at = self.freshness.record_checked_at(record.database, start.now);
        let timestamps = Timestamps { read_at: now.before(age), checked_at, generation };
        let response = self.memory.reuse(&key, record.response);
        let mut shard = self.fills.shard(&key);
        self.insert(&mut shard, key, response.clone(), timestamps, start.invalidations);
        let lifetimes = self.lifetimes.get(key.kind());
        let freshness = self.freshness.freshness(&key, timestamps, lifetimes, start.now);
        (response, freshness)
    }

    /// Inserts a response into memory, unless its key was invalidated after the read started.
    pub(crate) fn insert(
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
    pub(crate) fn get_any(&self, key: &CacheKey) -> Option<(CachedResponse, Freshness)> {
        let (response, timestamps) = self.memory.get(key)?;
        let lifetimes = self.lifetimes.get(key.kind());
        Some((response, self.freshness.freshness(key, timestamps, lifetimes, self.clock.now())))
    }

    /// The time since the entry in memory was read from the store.
    pub(crate) fn age(&self, key: &CacheKey) -> Option<Duration> {
        let (_, timestamps) = self.memory.get(key)?;
        Some(self.clock.now().coarse.since(timestamps.read_at))
    }

    /// The response to serve if a read fails.
    pub(crate) fn fallback(&self, key: &CacheKey) -> Option<CachedResponse> {
        let entry = self.get_any(key).filter(|(_, freshness)| *freshness != Freshness::Expired);
        entry.map(|(response, _)| response)
    }

    pub(crate) fn failed_recently(&self, key: &CacheKey) -> bool {
        let now = self.clock.now().coarse;
        self.fills.shard(key).failed_recently(key, now)
    }

    /// Removes entries from memory, and keeps reads in flight from bringing them back.
    pub(crate) fn invalidate(&self, keys: &[CacheKey]) {
        self.metrics.invalidations.add(keys.len() as u64);
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

    /// Starts to listen for invalidations. Everything that was read before must be revalidated: invalidations
    /// may have been missed.
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
}

impl<E: Send + Sync + 'static> Observed for ReadThrough<E> {
    fn metrics(&self) -> &CacheMetrics {
        &self.metrics
    }

    fn stats(&self) -> CacheStats {
        let metrics = &self.metrics;
        let (bytes, found_entries, not_found_entries) = self.memory.size();
        let (store_fills_in_flight, search_fills_in_flight) = self.limits.in_flight();
        CacheStats {
            from_redis: metrics.reads(Read::RedisHit) + metrics.reads(Read::RedisStale),
            fills: metrics.fills.get(),
            failed_fills: metrics.failed_fills.get(),
            store_fills_in_flight,
            search_fills_in_flight,
            shed: metrics.shed.get(),
            dropped_writes: metrics.dropped_writes.get(),
            invalidations: metrics.invalidations.get(),
            is_listening: self.is_listening(),
            bytes,
            max_bytes: self.memory.max_bytes(),
            found_entries,
            not_found_entries,
            evictions: self.memory.evictions(),
        }
    }
}
