//! A cache of HTTP response bodies in two tiers: the memory of this process, then Redis, which all replicas
//! share.
//!
//! - [`Cache`] is a read-through cache. It looks in memory, then in Redis, and then runs the *fill* that the
//!   caller provides, which reads the store. Fills are single-flight: concurrent requests for one key share one
//!   fill.
//! - [`CacheKey`] names a response, [`CachedResponse`] is its value.
//! - [`RecentChanges`] has the last known position of the catalogue, and what has changed up to it.
//!
//! The store is the source of truth. Each tier may be lost, corrupted or unavailable at any time: that costs
//! time, and never makes a response wrong.
//!
//! # Currency
//!
//! The changes of the catalogue are numbered (docs/formats/change-feed.md). An entry records the last position
//! that was known when its read from the store began, and [`RecentChanges`] the last change of each chart and
//! chartset. Nothing is removed from a tier when something changes. When an entry is read, it is
//!
//! - *current*, if what it shows has no later change: its chart or chartset, or anything for lists and pages;
//! - *changed*, if that has one, or *removed*, if an operator has removed it, or a chart or chartset that it
//!   shows; for lists and pages, if an operator has removed anything;
//! - *unknown*, if neither can be shown: its position is of another server of the catalogue, or too old, or the
//!   catalogue could not be polled for three seconds.
//!
//! So, while the store responds, a change is in force on a replica five seconds after its commit, whatever
//! happens to Redis, and whatever order reads, changes and writes of records come in.
//!
//! # Freshness
//!
//! An entry is
//!
//! 1. *fresh* (RFC 9111, section 4.2): served as it is;
//! 2. *stale*: served from memory, and refreshed in the background, like `stale-while-revalidate` (RFC 5861,
//!    section 3); read again if Redis has it;
//! 3. *due for revalidation*: read again before the response, and served if that fails, like `stale-if-error`
//!    (RFC 5861, section 4). To revalidate means a full new read here, without a condition;
//! 4. *expired*: never served.
//!
//! | Entry | Charts, chartsets, redirects | Lists and pages |
//! |---|---|---|
//! | current | fresh, and stale after [`Lifetimes::stale_after`] | the same |
//! | changed | due for revalidation | fresh for 1 s, then stale, and due for revalidation after 2 s |
//! | removed | expired | as if changed, and expired after 2 s |
//! | unknown | fresh for 3 s, then due for revalidation | as if changed |
//!
//! Every entry expires after [`Lifetimes::expire_after`]. The clocks of replicas differ: a record from
//! Redis is at least 3 s old.
//!
//! # When the store is slow or unavailable
//!
//! A fill fails after [`CacheConfig::fill_timeout`] for all requests that wait for it. Fills in flight, and the
//! requests that wait for them, have concurrency limits of their own, besides that of all requests. Above these
//! limits an older response is served if there is one; otherwise the request fails at once with
//! [`FillError::Overloaded`].

mod cache;
mod clock;
mod config;
mod fill_error;
mod fill_limits;
mod freshness;
mod key;
mod memory_tier;
mod metrics;
mod permit_queue;
mod recent_changes;
mod redis_memory;
mod redis_record;
mod redis_tier;
mod redis_writes;
mod response;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle_tests;
mod single_flight;
mod sync;
mod version;

pub use cache::{Cache, CacheStats};
pub use clock::Clock;
pub use config::{CacheConfig, CacheConnections, Lifetimes};
pub use fill_error::FillError;
pub use key::{CacheKey, Kind};
pub use recent_changes::RecentChanges;
pub use response::{CachedBody, CachedResponse, Filled, MemoryLookup, Representation};
