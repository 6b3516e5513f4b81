//! Finished answers, kept in two tiers in front of the store: the memory of this process, then Redis.
//!
//! - [`Cache`] reads: from memory, else from Redis, else from the store through the fill that the caller brings,
//!   one fill per key however many wait. [`Cache::get_or_fill_rate_limited`] does so together with the rate limit, in at most
//!   one round trip to Redis.
//! - [`CacheKey`] names what is kept, [`CachedResponse`] is what is kept of it.
//! - [`Invalidator`] tells Redis and every replica that an answer has changed.
//!
//! The store is the truth. Nothing here is needed for a right answer: either tier may be lost, damaged or away at
//! any time, and costs time only.
//!
//! # How old an answer can be
//!
//! A change reaches Redis at once, and every replica as soon as the message travels. The ages in [`Lifetimes`] are the
//! net below: what they bound is how long a message that was lost without a trace can matter. A replica that
//! cannot hear messages knows it within two seconds, and then serves nothing that it has not checked within the
//! last three: answer by answer, or all of them at once by the generation of the catalogue, see
//! [`CacheConfig::catalogue`]. So, while the store answers, a change is in force everywhere within five seconds,
//! whatever becomes of Redis.
//!
//! A change and a fill that began before it cannot meet badly: a fill keeps its answer only if its key was not
//! invalidated meanwhile, in memory by a counter, in Redis by a mark that the writing script respects.
//!
//! # When the store does not answer
//!
//! A fill ends after [`CacheConfig::fill_timeout`], with an error for all that wait. Fills in flight and the requests
//! that wait for them are limited apart from all other requests; above the limits an older answer is served, else
//! the request fails at once with [`FillError::Overloaded`].
//!
//! # What Redis forgets
//!
//! What remains is what Redis itself forgets. If it loses the mark of a change (evicted, flushed, or lost with a
//! server whose writes had not been copied) while a fill from before the change is under way, or comes back with a
//! snapshot from before the change, it holds an old answer for [`Lifetimes::stale_after`] at most, which is then read again. So
//! a Redis for this cache is to keep no snapshots.

mod admission;
mod answer;
mod cache;
mod catalogue;
mod clock;
mod config;
mod feed;
mod fill_limits;
mod flights;
mod inner;
mod invalidation;
mod key;
mod memory;
mod passage;
mod record;
mod redis_tier;
mod subscription;
mod trust;

pub use admission::Admission;
pub use answer::{CachedBody, CachedResponse, FillError, Representation};
pub use cache::{Cache, CacheConnections, CacheStats, Lookup};
pub use catalogue::{CatalogueStatus, CatalogueStatusSource};
pub use clock::Clock;
pub use config::{CacheConfig, Lifetimes, LifetimesByKind};
pub use invalidation::{InvalidationError, Invalidator};
pub use key::{CacheKey, Kind};
