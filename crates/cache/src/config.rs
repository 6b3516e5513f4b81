//! The configuration of a cache, and its connections.

use std::num::NonZeroUsize;
use std::time::Duration;

use chart_index_redis::{RedisConfig, RedisConnection, RedisEndpoint};

use crate::{CatalogueStatusSource, Clock, Kind};

/// How an entry ages, see [Freshness](crate#freshness).
///
/// All ages but [`recheck_after`](Self::recheck_after) count from the *start* of the read from the store. Each
/// replica varies them for each key by up to a tenth, except [`expire_after`](Self::expire_after), so that
/// entries which were read together are not read again together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Stale at this age since the entry was last checked: memory asks Redis in the background whether the
    /// entry is still there. Limits the effect of an invalidation message that this replica missed.
    pub recheck_after: Duration,
    /// Stale at this age: served once more, while the store is read in the background. Together with
    /// [`revalidate_after`](Self::revalidate_after) this limits the effect of an invalidation that did not
    /// reach Redis.
    pub stale_after: Duration,
    /// Due for revalidation at this age: served only if the store does not respond. Redis drops the entry now.
    pub revalidate_after: Duration,
    /// Expired at this age: not served at all.
    pub expire_after: Duration,
}

/// How entries age, which depends on what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimesByKind {
    /// Chart lookups, known or unknown: rechecked after 30 s, stale after 10 minutes, revalidated after an
    /// hour, served for a day while the store fails.
    pub lookup: Lifetimes,
    /// ROX files and previews, also those that do not exist: like lookups. The bytes of a file never change,
    /// but it may be removed.
    pub rox: Lifetimes,
    /// Pages of the chartset list: stale after 5 s, revalidated after 30 s, served for an hour while the search
    /// engine fails. They are not invalidated: a new generation of the engine's data has new keys.
    pub list: Lifetimes,
    /// Chartset details and source redirects: like lists.
    pub detail: Lifetimes,
    /// Pages of the web site: like lists.
    pub page: Lifetimes,
}

impl LifetimesByKind {
    /// The lifetimes of responses of this kind.
    #[must_use]
    pub const fn get(&self, kind: Kind) -> &Lifetimes {
        match kind {
            Kind::Lookup => &self.lookup,
            Kind::Rox | Kind::Preview => &self.rox,
            Kind::List => &self.list,
            Kind::Detail | Kind::Source => &self.detail,
            Kind::Page => &self.page,
        }
    }
}

impl Default for LifetimesByKind {
    fn default() -> Self {
        let chart = Lifetimes {
            recheck_after: Duration::from_secs(30),
            stale_after: Duration::from_mins(10),
            revalidate_after: Duration::from_hours(1),
            expire_after: Duration::from_hours(24),
        };
        let browse = Lifetimes {
            recheck_after: Duration::from_secs(5),
            stale_after: Duration::from_secs(5),
            revalidate_after: Duration::from_secs(30),
            expire_after: Duration::from_hours(1),
        };
        Self { lookup: chart, rox: chart, list: browse, detail: browse, page: browse }
    }
}

/// The configuration of a [`Cache`](crate::Cache).
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// The maximum bytes of memory: 64 MiB (`CACHE_BYTES`). A quarter is reserved for keys that the index does
    /// not hold, which is 233,000 keys at the default, so that neither they nor the responses with a body evict
    /// the other.
    pub bytes: u64,
    /// How entries age.
    pub lifetimes: LifetimesByKind,
    /// The prefix of the keys and of the channel in Redis: `ci:1:`. The digit is the version of the format.
    pub key_prefix: String,
    /// How long a request waits for a fill when an older response is cached, before it gets that: 500 ms.
    pub fallback_timeout: Duration,
    /// The maximum duration of a fill: 5 s, which is the deadline of a request. The store has shorter timeouts
    /// of its own; this one applies whatever the store does.
    pub fill_timeout: Duration,
    /// The maximum number of fills in flight: 64 for lists and pages, and 64 for all other responses.
    pub max_fills: NonZeroUsize,
    /// The maximum number of fills of batches in flight: 2. Each uses a connection of the store for tens of
    /// milliseconds.
    pub max_batch_fills: NonZeroUsize,
    /// How long a fill waits for a permit when [`max_fills`](Self::max_fills) are in flight: 2 s, enough for a
    /// burst of lists that take a few milliseconds each, and well below the deadline of a request.
    pub fill_permit_timeout: Duration,
    /// The maximum number of requests that wait for fills, except for lists: 384. It must be below the number
    /// of such requests that the server accepts, which leaves room for cached responses.
    pub max_waiting_requests: NonZeroUsize,
    /// The same limit for lists and pages: 128.
    pub max_waiting_lists: NonZeroUsize,
    /// Reports the generation of the catalogue. While no invalidations are received, an entry is served as long
    /// as the catalogue was in the generation of the entry within the last three seconds; without this, as long
    /// as the entry itself was checked within that time.
    pub catalogue: Option<CatalogueStatusSource>,
    /// The Redis to receive invalidations from. In a cluster these are the nodes to try in turn: each of them
    /// leads to the node with the channel. Without an endpoint, no entry in memory is served for longer than
    /// three seconds without a check, see [`catalogue`](Self::catalogue).
    pub invalidations: RedisConfig,
    /// The clock that entries age by.
    pub clock: Clock,
}

impl CacheConfig {
    /// The value of [`key_prefix`](Self::key_prefix) by default. The indexer uses it as well, to invalidate
    /// responses.
    pub const KEY_PREFIX: &str = "ci:1:";
    const MAX_FILLS: NonZeroUsize = NonZeroUsize::new(64).unwrap();
    const MAX_BATCH_FILLS: NonZeroUsize = NonZeroUsize::new(2).unwrap();
    const MAX_WAITING_REQUESTS: NonZeroUsize = NonZeroUsize::new(384).unwrap();
    const MAX_WAITING_LISTS: NonZeroUsize = NonZeroUsize::new(128).unwrap();
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            lifetimes: LifetimesByKind::default(),
            key_prefix: Self::KEY_PREFIX.to_owned(),
            fallback_timeout: Duration::from_millis(500),
            fill_timeout: Duration::from_secs(5),
            max_fills: Self::MAX_FILLS,
            max_batch_fills: Self::MAX_BATCH_FILLS,
            fill_permit_timeout: Duration::from_secs(2),
            max_waiting_requests: Self::MAX_WAITING_REQUESTS,
            max_waiting_lists: Self::MAX_WAITING_LISTS,
            catalogue: None,
            invalidations: RedisConfig::new(RedisEndpoint::None),
            clock: Clock::default(),
        }
    }
}

/// The connections of a cache to Redis. Large responses have their own, so that small ones do not wait behind
/// them.
#[derive(Debug, Clone)]
pub struct CacheConnections {
    /// For everything but ROX files and previews. Share it with the rate limiter, so that a rate limit check
    /// and a read are sent in one pipeline.
    pub main: RedisConnection,
    /// For ROX files and previews, so that small responses do not wait behind them.
    pub rox: RedisConnection,
}

impl CacheConnections {
    /// Connections to no Redis: the cache uses memory only.
    #[must_use]
    pub fn disabled() -> Self {
        Self { main: RedisConnection::disabled(), rox: RedisConnection::disabled() }
    }
}
