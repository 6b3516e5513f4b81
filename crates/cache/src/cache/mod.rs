//! The cache: its public interface, lookups in its tiers, and insertion.

mod batch_reads;
mod fills;
mod stats;

use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chart_index_domain::ReadError;
use chart_index_instrumentation::metrics;
use futures_util::TryFutureExt;

pub use self::stats::CacheStats;
use crate::fill_limits::FillLimits;
use crate::freshness::{FRESH_IF_UNKNOWN, Freshness, FreshnessRules, Timestamps};
use crate::memory_tier::MemoryTier;
use crate::metrics::{CacheMetrics, Read};
use crate::recent_changes::Currency;
use crate::redis_record::Record;
use crate::redis_tier::RedisTier;
use crate::single_flight::{Shard, SingleFlight};
use crate::version::Version;
use crate::{
    CacheConfig, CacheConnections, CacheKey, CachedBody, CachedResponse, Clock, FillError, Filled,
    MemoryLookup, Representation,
};

/// A read-through cache of responses in front of the store: two tiers, and the fills behind them.
pub struct Cache {
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

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(config: CacheConfig, connections: CacheConnections) -> Arc<Self> {
        let this = Arc::new(Self {
            memory: MemoryTier::with_capacity(config.bytes),
            limits: FillLimits::new(&config),
            redis: RedisTier::new(connections),
            fills: Arc::new(SingleFlight::new()),
            rules: FreshnessRules::new(config.changes, config.lifetimes),
            clock: config.clock,
            fallback_timeout: config.fallback_timeout,
            fill_timeout: config.fill_timeout,
            metrics: CacheMetrics::new(),
        });
        metrics().observe(&this, stats::report);
        this
    }

    /// Returns the response from memory, from Redis, or from the fill.
    ///
    /// The fill is a task of its own: it continues when this future is dropped, and its response is cached.
    /// Concurrent requests for the key share its outcome, including an error; the next request after an error
    /// tries again. If the fill fails, or more fills are in flight than [`CacheConfig::max_fills`], an older
    /// response is returned if there is one.
    ///
    /// # Errors
    ///
    /// The fill failed, took too long, or was rejected because too many others wait for a permit.
    pub async fn get<F, Fut, R>(self: &Arc<Self>, key: CacheKey, fill: F) -> Result<CachedResponse, FillError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        let fill = || fill().map_ok(Into::into);
        match self.get_from_memory(&key) {
            MemoryLookup::Fresh(response) => Ok(response),
            MemoryLookup::Stale(response) => {
                self.refresh(key, fill);
                Ok(response)
            }
            // Boxed, so that the future of a hit is small.
            MemoryLookup::Miss => Box::pin(self.fetch(key, fill)).await,
        }
    }

    /// The gzip representation of a body from this cache. `compress` is called when it is first needed; the
    /// result is cached with the body. `None` if `compress` returns that.
    ///
    /// Only memory holds compressed bodies: in Redis they would take a quarter more memory and network, to save
    /// each replica one compression of a response.
    pub fn gzip<'body>(
        &self,
        key: &CacheKey,
        body: &'body CachedBody,
        compress: impl FnOnce(&Bytes) -> Option<Representation>,
    ) -> Option<&'body Representation> {
        let mut is_new = false;
        let gzip = body.gzip_or_compress(|plain| {
            is_new = true;
            compress(plain)
        });
        if is_new && gzip.is_some() {
            self.update_size(key, body);
        }
        gzip
    }

    /// Looks in memory for a response that may be served now, without waiting.
    #[must_use]
    pub fn get_from_memory(&self, key: &CacheKey) -> MemoryLookup {
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
        // A record of another lineage is a miss: it may show what was removed before this database began.
        let inserted = record.and_then(|record| {
            let version = self.rules.changes.version_of_other(record.position)?;
            Some(self.insert_found_record(key, record, version))
        });
        if self.redis.connection(key.kind()).is_configured() {
            let read = match inserted {
                Some((_, Freshness::Fresh)) => Read::RedisHit,
                Some(_) | None => Read::RedisMiss,
            };
            self.metrics.count(key.kind(), read);
        }
        inserted
    }

    /// Inserts a record, unless memory has an entry that is at least as good, which is returned instead.
    fn insert_found_record(
        &self,
        key: CacheKey,
        record: Record,
        version: Version,
    ) -> (CachedResponse, Freshness) {
        let now = self.clock.now();
        let age = Duration::from_millis(self.clock.unix_ms().saturating_sub(record.read_unix_ms));
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

    /// The time since the response in memory was read, if it has to be read again before it is served: a
    /// request that got it nevertheless got it because the store did not respond.
    #[must_use]
    pub fn age(&self, key: &CacheKey) -> Option<Duration> {
        let (timestamps, now) = (self.memory.timestamps(key)?, self.clock.now());
        let must_revalidate = self.rules.freshness(key, timestamps, now) == Freshness::MustRevalidate;
        must_revalidate.then(|| now.since(timestamps.read_at_ms))
    }

    /// Whether the response in memory is shown to be current: the last poll of the catalogue, at most three
    /// seconds ago, has no later change of what it depends on.
    #[must_use]
    pub fn is_current(&self, key: &CacheKey) -> bool {
        self.memory.timestamps(key).is_some_and(|timestamps| {
            self.rules.changes.currency(key, timestamps.version, self.clock.now()) == Currency::Current
        })
    }

    /// The response in memory to serve if a read of the store fails, however stale.
    #[must_use]
    pub fn fallback(&self, key: &CacheKey) -> Option<CachedResponse> {
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

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
