//! The configuration of a cache, and its connections.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chart_index_redis::{RedisConnection, RedisPool};

use crate::{Clock, RecentChanges};

/// How an entry ages, see [Freshness](crate#freshness). Ages count from the *start* of the read from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// When an entry that can be shown to be current is stale: 10 minutes. Each replica varies it for each key
    /// by up to a tenth, so that entries which were read together are not read again together.
    pub stale_after: Duration,
    /// When an entry is not served any more, not even if the store does not respond: 1 hour.
    pub expire_after: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { stale_after: Duration::from_mins(10), expire_after: Duration::from_hours(1) }
    }
}

/// The configuration of a [`Cache`](crate::Cache).
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// The maximum bytes of memory: 64 MiB (`CACHE_BYTES`). A quarter is reserved for keys that the index does
    /// not hold, which is 210,000 keys at the default, so that neither they nor the responses with a body evict
    /// the other.
    pub bytes: u64,
    /// How entries age.
    pub lifetimes: Lifetimes,
    /// How long a request waits for a fill when an older response is cached, before it gets that: 500 ms. A
    /// batch needs one for each key, and waits for its fill while polls succeed.
    pub fallback_timeout: Duration,
    /// The maximum duration of a fill: 5 s, which is the deadline of a request. The store has shorter timeouts
    /// of its own; this one applies whatever the store does.
    pub fill_timeout: Duration,
    /// The maximum number of fills in flight: 64 for lists and pages, and 64 for all other responses.
    pub max_fills: NonZeroUsize,
    /// The maximum number of fills in flight for which PostgreSQL searches: 4 (`POSTGRES_MAX_SEARCHES`). A
    /// search may take as long as hundreds of lookups.
    pub max_postgres_searches: NonZeroUsize,
    /// How long a fill waits for a permit when [`max_fills`](Self::max_fills) are in flight: 2 s, enough for a
    /// burst of lists that take a few milliseconds each, and well below the deadline of a request. One that
    /// searches PostgreSQL waits up to 4 s.
    pub fill_permit_timeout: Duration,
    /// The maximum number of requests that wait for fills, except for lists: 384. It must be below the number
    /// of such requests that the server accepts, which leaves room for cached responses.
    pub max_waiting_requests: NonZeroUsize,
    /// The same limit for lists and pages: 128.
    pub max_waiting_lists: NonZeroUsize,
    /// What is known of the catalogue. Without it, no entry can be shown to be current.
    pub changes: Option<Arc<RecentChanges>>,
    /// The clock that entries age by.
    pub clock: Clock,
}

impl CacheConfig {
    const MAX_FILLS: NonZeroUsize = NonZeroUsize::new(64).unwrap();
    const MAX_POSTGRES_SEARCHES: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    const MAX_WAITING_REQUESTS: NonZeroUsize = NonZeroUsize::new(384).unwrap();
    const MAX_WAITING_LISTS: NonZeroUsize = NonZeroUsize::new(128).unwrap();
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            lifetimes: Lifetimes::default(),
            fallback_timeout: Duration::from_millis(500),
            fill_timeout: Duration::from_secs(5),
            max_fills: Self::MAX_FILLS,
            max_postgres_searches: Self::MAX_POSTGRES_SEARCHES,
            fill_permit_timeout: Duration::from_secs(2),
            max_waiting_requests: Self::MAX_WAITING_REQUESTS,
            max_waiting_lists: Self::MAX_WAITING_LISTS,
            changes: None,
            clock: Clock::default(),
        }
    }
}

/// The connections of a cache to Redis. Large responses have their own, so that small ones do not wait behind
/// them.
#[derive(Debug, Clone)]
pub struct CacheConnections {
    /// For single reads, except of ROX files and previews.
    pub main: RedisConnection,
    /// For single reads of ROX files and previews, so that small responses do not wait behind them.
    pub rox: RedisConnection,
    /// For reads of many responses, and for writes.
    pub pool: RedisPool,
}

impl CacheConnections {
    /// Connections to no Redis: the cache uses memory only.
    #[must_use]
    pub fn disabled() -> Self {
        Self {
            main: RedisConnection::disabled(),
            rox: RedisConnection::disabled(),
            pool: RedisPool::disabled(),
        }
    }
}
