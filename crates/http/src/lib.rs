//! The shared routing layer: what every answer of the service has, whichever endpoint gives it.
//!
//! - [`ApiError`]: one error type, one status mapping, one JSON form (RFC 9457).
//! - [`HashParam`], [`ChartsetIdParam`]: path parameters as the domain's own types.
//! - [`JsonBody`], [`RequestHeaders`]: finished bodies with an `ETag`, answered conditionally and compressed.
//! - [`CachePolicy`]: a handler names how long its answer may be kept; one layer writes the header.
//! - [`RateLimiting`], [`RateLimitCheck`]: the limit around the routes of a group.
//! - [`ResponseCache`]: finished answers behind the limits, from memory, Redis or the store.
//! - [`public`], [`private`]: the layers around the routes of a listener.
//! - [`serve`]: the server itself, on a socket and until a signal that the caller owns.

mod cache_policy;
mod config;
mod cors;
mod encoding;
mod entity_tag;
mod error;
mod extract;
mod host;
mod json_body;
mod layers;
mod limits;
mod log_limit;
mod peers;
mod rate_limit;
mod request_span;
mod response_cache;
mod server;

pub use cache_policy::CachePolicy;
pub use config::{LayerConfig, ServerConfig, milliseconds};
pub use entity_tag::{EntityTag, MalformedEntityTag};
pub use error::{ApiError, Resource};
pub use extract::{ChartsetIdParam, HashParam};
pub use json_body::{JsonBody, RequestHeaders, not_modified};
pub use layers::{private, public};
pub use rate_limit::{RateLimitCheck, RateLimiting};
pub use response_cache::ResponseCache;
pub use server::serve;
