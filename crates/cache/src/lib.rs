//! A cache of HTTP response bodies in two tiers: the memory of this process, then Redis, which all replicas
//! share.
//!
//! - [`Cache`] is a read-through cache. It looks in memory, then in Redis, and then runs the *fill* that the
//!   caller provides, which reads the store. Fills are single-flight: concurrent requests for one key share one
//!   fill. [`Cache::get_or_fill_rate_limited`] combines this with the rate limit in one round trip to Redis.
//! - [`CacheKey`] names a response, [`CachedResponse`] is its value.
//! - [`Invalidator`] removes responses that have changed from Redis, and from the memory of every replica.
//!
//! The store is the source of truth. Each tier may be lost, corrupted or unavailable at any time: that costs
//! time, and never makes a response wrong.
//!
//! # Freshness
//!
//! By the [`Lifetimes`] of its kind, an entry is
//!
//! 1. *fresh* (RFC 9111, section 4.2): served as it is;
//! 2. *stale*, after `stale_after` or `recheck_after`: served, and refreshed in the background, like
//!    `stale-while-revalidate` (RFC 5861, section 3);
//! 3. *due for revalidation*, after `revalidate_after`: read again before the response, and served if that
//!    fails, like `stale-if-error` (RFC 5861, section 4);
//! 4. *expired*, after `expire_after`: never served.
//!
//! To revalidate means a full new read here, without a condition.
//!
//! # Invalidation
//!
//! A change takes effect before that: the [`Invalidator`] replaces the entry in Redis at once, and publishes a
//! message, on which every replica removes the entry from its memory. The lifetimes only limit the effect of
//! messages that are lost.
//!
//! A replica notices within two seconds that it no longer receives messages. Until it does again, it serves
//! nothing that it has not checked within the last three seconds, either by reading that response again, or by
//! the generation of the whole catalogue (see [`CacheConfig::catalogue`]). So, while the store is available,
//! every change takes effect on all replicas within five seconds, whatever happens to Redis.
//!
//! A fill that was started before a change does not bring the old response back: it is cached only if its key
//! was not invalidated in the meantime. In memory a counter shows that, in Redis a marker under the key, which
//! the script that inserts responses does not overwrite.
//!
//! # When the store is slow or unavailable
//!
//! A fill fails after [`CacheConfig::fill_timeout`] for all requests that wait for it. Fills in flight, and the
//! requests that wait for them, have concurrency limits of their own, besides that of all requests. Above these
//! limits an older response is served if there is one; otherwise the request fails at once with
//! [`FillError::Overloaded`].
//!
//! # When the store is restored
//!
//! A store that was restored from a backup, or whose standby took over, may be in an earlier state, and assigns
//! the numbers of lost changes again. Entries record the generation of the catalogue and the database that they
//! were read from ([`CatalogueStatus`]). Those of another database are due for revalidation, in memory as in
//! Redis, unless the catalogue is in their generation.
//!
//! # When Redis loses data
//!
//! Redis may lose the marker of a change while a fill from before the change is in flight: by eviction,
//! `FLUSHALL`, or a failover to a replica that lags. Or it may restart from a snapshot from before the change.
//! Then it holds an old response for up to [`Lifetimes::revalidate_after`]; the first read after
//! [`Lifetimes::stale_after`] still gets it, and refreshes it. For this reason the Redis of this cache should
//! not write snapshots.

mod batch_reads;
mod cache;
mod clock;
mod config;
mod database_tracker;
mod fill_error;
mod fill_limits;
mod fills;
mod freshness;
mod generation;
mod invalidation_listener;
mod invalidation_message;
mod invalidator;
mod key;
mod memory_tier;
mod metrics;
mod rate_limited_reads;
mod read_start;
mod read_through;
mod redis_record;
mod redis_tier;
mod redis_writes;
mod response;
mod single_flight;
mod stats;
mod subscription;

pub use cache::Cache;
pub use clock::Clock;
pub use config::{CacheConfig, CacheConnections, Lifetimes, LifetimesByKind};
pub use fill_error::FillError;
pub use generation::{CatalogueStatus, CatalogueStatusSource};
pub use invalidator::{InvalidationError, Invalidator};
pub use key::{CacheKey, Kind};
pub use rate_limited_reads::Admission;
pub use response::{CachedBody, CachedResponse, MemoryLookup, Representation};
pub use stats::CacheStats;
