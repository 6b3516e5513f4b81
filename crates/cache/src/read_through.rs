//! The two tiers: lookups and insertion.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;
use std::time::Duration;

use crate::fill_limits::FillLimits;
use crate::freshness::{FRESH_IF_UNKNOWN, Freshness, FreshnessRules, Timestamps};
use crate::memory_tier::MemoryTier;
use crate::metrics::{CacheMetrics, Read};
use crate::redis_record::Record;
use crate::redis_tier::RedisTier;
use crate::single_flight::{Shard, SingleFlight};
use crate::version::Version;
use crate::{CacheConfig, CacheConnections, CacheKey, CachedBody, CachedResponse, Clock, MemoryLookup};

/// The two tiers, and the fills behind them.
pub(crate) struct ReadThrough {
    pub(crate) memory: MemoryTier,
    pub(crate) redis: RedisTier,
    pub(crate) fills: Arc<SingleFlight>,
    pub(crate) rules: FreshnessRules,
    pub(crate) clock: Clock,
    pub(crate) fallback_timeout: Duration,
    pub(crate) fill_timeout: Duration,
    pub(crate) limits: FillLimits,
    pub(crate) metrics: CacheMetrics,
}

impl ReadThrough {
    pub(crate) fn new(config: CacheConfig, connections: CacheConnections) -> Self {
        Self {
            memory: MemoryTier::with_capacity(config.bytes),
            limits: FillLimits::new(&config),
            redis: RedisTier::new(connections, config.key_prefix),
            fills: Arc::new(SingleFlight::new()),
            rules: FreshnessRules::new(config.changes, config.lifetimes),
            clock: config.clock,
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

    /// What is known now, for a read of the store that starts after this call.
    pub(crate) fn start_read(&self) -> Timestamps {
        Timestamps { read_at_ms: self.clock.now().ms, version: self.rules.changes.version() }
    }

    /// Whether a request that comes now may join a fill that started at this version.
    pub(crate) fn may_join(&self, key: &CacheKey, version: Version) -> bool {
        self.rules.may_join(key, version, self.clock.now())
    }

    /// Whether a fill is in flight that should be joined.
    pub(crate) fn is_in_flight(&self, key: &CacheKey) -> bool {
        let version = self.fills.shard(key).in_flight_version(key);
        version.is_some_and(|version| self.may_join(key, version))
    }

    /// Inserts a response that Redis may have into memory, and counts the read.
    pub(crate) fn insert_record(
        &self,
        key: CacheKey,
        record: Option<Record>,
    ) -> Option<(CachedResponse, Freshness)> {
        let inserted = record.map(|record| self.insert_found_record(key, record));
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

    /// Inserts a record, unless memory has an entry that is at least as good, which is returned instead.
    fn insert_found_record(&self, key: CacheKey, record: Record) -> (CachedResponse, Freshness) {
        let now = self.clock.now();
        let age = Duration::from_millis(self.clock.unix_ms().saturating_sub(record.read_unix_ms));
        let version =
            record.position.map_or(Version::UNKNOWN, |position| self.rules.changes.version_of(position));
        // The clock of the replica that read it may be ahead. So only its version makes it fresh.
        let timestamps = Timestamps { read_at_ms: now.before(age.max(FRESH_IF_UNKNOWN)), version };
        let freshness = self.rules.freshness(&key, timestamps, now);
        let response = self.memory.reuse(&key, record.response);
        let _shard = self.fills.shard(&key);
        if let Some((cached, cached_timestamps)) = self.memory.get(&key) {
            let cached_freshness = self.rules.freshness(&key, cached_timestamps, now);
            let is_as_good = match cached_freshness.cmp(&freshness) {
                Less => true,
                // One of them may be served if the store does not respond.
                Equal => freshness != Freshness::MustRevalidate || cached_timestamps.version >= version,
                Greater => false,
            };
            if is_as_good {
                return (cached, cached_freshness);
            }
        }
        if freshness != Freshness::Expired {
            self.memory.insert(key, response.clone(), timestamps);
        }
        (response, freshness)
    }

    /// Inserts a response that was read from the store, unless memory has one whose read began later. Returns
    /// whether it has none.
    pub(crate) fn insert_read(
        &self,
        _shard: &mut Shard,
        key: CacheKey,
        response: CachedResponse,
        timestamps: Timestamps,
    ) -> bool {
        let began_later = |cached: Timestamps| {
            (cached.read_at_ms, cached.version) > (timestamps.read_at_ms, timestamps.version)
        };
        let is_latest = !self.memory.timestamps(&key).is_some_and(began_later);
        if is_latest {
            self.memory.insert(key, response, timestamps);
        }
        is_latest
    }

    /// The entry in memory, whatever its freshness.
    pub(crate) fn get_any(&self, key: &CacheKey) -> Option<(CachedResponse, Freshness)> {
        let (response, timestamps) = self.memory.get(key)?;
        Some((response, self.rules.freshness(key, timestamps, self.clock.now())))
    }

    /// The time since the entry in memory was read from the store, if it must be revalidated.
    pub(crate) fn age(&self, key: &CacheKey) -> Option<Duration> {
        let (timestamps, now) = (self.memory.timestamps(key)?, self.clock.now());
        let must_revalidate = self.rules.freshness(key, timestamps, now) == Freshness::MustRevalidate;
        must_revalidate.then(|| now.since(timestamps.read_at_ms))
    }

    /// The response to serve if a read fails.
    pub(crate) fn fallback(&self, key: &CacheKey) -> Option<CachedResponse> {
        let entry = self.get_any(key).filter(|(_, freshness)| *freshness != Freshness::Expired);
        entry.map(|(response, _)| response)
    }

    pub(crate) fn failed_recently(&self, key: &CacheKey) -> bool {
        let now = self.clock.now();
        self.fills.shard(key).failed_recently(key, now)
    }

    /// Updates the accounted size of a body that was compressed after it was cached.
    pub(crate) fn update_size(&self, key: &CacheKey, body: &CachedBody) {
        let _shard = self.fills.shard(key);
        self.memory.update_size(*key, body);
    }
}
