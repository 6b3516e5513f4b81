//! How much is kept, and for how long.

use std::num::NonZeroUsize;
use std::time::Duration;

use chart_index_redis::{RedisConfig, RedisEndpoint};

use crate::{CatalogueStatusSource, Clock, Kind};

/// How old an answer may become. All ages count from the *beginning* of the read from the store, except
/// [`recheck_after`](Self::recheck_after); each varies by up to a tenth from key to key and from replica to replica, so that what
/// was read together is not read again together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// How long memory serves an answer before it asks Redis, behind the answer, whether it is still there. This
    /// is what heals a lost invalidation message.
    pub recheck_after: Duration,
    /// How long an answer is served before the store is read again, behind the answer. This is what heals an
    /// invalidation that never reached Redis.
    pub stale_after: Duration,
    /// From here on an answer is served only while the store fails. Redis drops it now.
    pub revalidate_after: Duration,
    /// From here on it is not served at all.
    pub expire_after: Duration,
}

/// The ages of each kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimesByKind {
    /// Lookup answers, also those that say "unknown": checked after 30 s, read again after 10 minutes, dropped
    /// after an hour, served for a day while the store fails. Removals and updates do not wait for these ages.
    pub lookup: Lifetimes,
    /// ROX files, also those that are not there: the same. The bytes of a file never change; that it is there may.
    pub rox: Lifetimes,
    /// Pages of the list: read again after 5 s, dropped after 30 s, served for an hour while the engine fails. No
    /// message announces their changes; a new generation of the index has new keys.
    pub list: Lifetimes,
    /// Chartsets, and where they are published: like the list.
    pub detail: Lifetimes,
}

impl LifetimesByKind {
    /// The ages of a kind.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> &Lifetimes {
        match kind {
            Kind::Lookup => &self.lookup,
            Kind::Rox => &self.rox,
            Kind::List => &self.list,
            Kind::Detail | Kind::Source => &self.detail,
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
        Self { lookup: chart, rox: chart, list: browse, detail: browse }
    }
}

/// The configuration of a [`Cache`](crate::Cache).
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// `CACHE_BYTES`: the memory for answers, 64 MiB. A quarter of it is for "not found" alone, room for 233,000 at
    /// the default, so that neither those nor the answers with a body can push the other out.
    pub bytes: u64,
    /// How old answers may become.
    pub lifetimes: LifetimesByKind,
    /// What keys and the channel in Redis begin with: `ci:1:`. The digit is the version of the format.
    pub key_prefix: String,
    /// How long a request waits for the store when it could be given an old answer instead: 500 ms.
    pub fallback_timeout: Duration,
    /// How long a fill may take: 5 s, as long as a request may. A store has shorter timeouts of its own; whatever
    /// becomes of those, after this time the requests that wait get an error, and the next one starts a new fill.
    pub fill_timeout: Duration,
    /// The most fills in flight at once: 64 for the store, and as many for the search engine, which answers lists.
    pub max_fills: NonZeroUsize,
    /// How long a fill above that waits for a permit: 2 s, long enough for a burst of lists that take a few milliseconds
    /// each, and well within the deadline of a request.
    pub fill_permit_timeout: Duration,
    /// The most requests that wait for fills at once: 384 for the store, and as many for the search engine. Together
    /// they are to be fewer than the requests that the server accepts, so that there is room for cached responses.
    pub max_waiting_requests: NonZeroUsize,
    /// Where the generation of the catalogue is read. While invalidations are not received, an answer that was read
    /// in the present generation is served as long as this was confirmed within the last three seconds; without it,
    /// as long as the answer itself was checked in that time.
    pub catalogue: Option<CatalogueStatusSource>,
    /// Where invalidations are heard: a message is heard at each node of a cluster, so one is listened to, and the
    /// next one after it fails. Without an endpoint, nothing in memory is served for more than three seconds without
    /// a check, see [`catalogue`](Self::catalogue).
    pub invalidations: RedisConfig,
    /// The clock that ages are counted by.
    pub clock: Clock,
}

impl CacheConfig {
    /// What keys in Redis begin with, unless configured otherwise.
    pub const KEY_PREFIX: &str = "ci:1:";
    const MAX_FILLS: NonZeroUsize = NonZeroUsize::new(64).unwrap();
    const MAX_WAITING: NonZeroUsize = NonZeroUsize::new(384).unwrap();
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
            fill_permit_timeout: Duration::from_secs(2),
            max_waiting_requests: Self::MAX_WAITING,
            catalogue: None,
            invalidations: RedisConfig::new(RedisEndpoint::None),
            clock: Clock::default(),
        }
    }
}
