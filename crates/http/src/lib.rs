//! The HTTP layer that the services share.
//!
//! - [`ApiError`]: all error responses (RFC 9457).
//! - [`HashParam`], [`ChartsetIdParam`], [`PathParam`]: extractors of path parameters.
//! - [`Include`]: the extension fields that a request names.
//! - [`JsonRequest`]: the extractor of request bodies.
//! - [`TextBody`], [`RequestHeaders`]: bodies with an `ETag`, conditional requests and gzip.
//! - [`ErrorPages`]: error responses as HTML.
//! - [`CachePolicy`]: the `Cache-Control` header, by name. [`CdnHeaders`]: those for a CDN.
//! - [`HttpRateLimiter`]: rate limits per group of routes.
//! - [`Routes`]: the routes of a service, each in its group.
//! - [`ResponseCache`]: reads of responses through the cache.
//! - [`PublicApi`]: routes with what all requests have in common.
//! - [`openapi`]: what the OpenAPI documents of the services share.
//! - [`Server`]: the HTTP server.
//! - [`WorkerThreads`]: the threads that handle requests.

mod acceptor;
mod cache_policy;
mod cdn;
mod config;
mod connection_metrics;
mod content_encoding;
mod cors;
mod entity_tag;
mod error;
mod error_page;
mod error_type;
mod group_budget;
mod host_header;
mod html_headers;
mod include;
mod json_request;
mod log_throttle;
mod method_label;
mod middleware;
pub mod openapi;
mod path_params;
mod peer_connections;
mod rate_limit;
mod request_id;
mod request_limits;
mod request_log;
mod request_metrics;
mod request_span;
mod request_telemetry;
mod response_cache;
mod routes;
mod server;
mod source_pages;
mod text_body;
mod worker;

pub use cache_policy::CachePolicy;
pub use cdn::{CdnConfig, CdnHeaders};
pub use config::{RequestLimitConfig, ServerConfig};
pub use entity_tag::{EntityTag, MalformedEntityTag};
pub use error::{AllowedMethods, ApiError, Overload, Problem, Resource};
pub use error_page::{ErrorInPage, ErrorPage, ErrorPages};
pub use error_type::ErrorType;
pub use include::{FieldGroup, Include};
pub use json_request::JsonRequest;
pub use middleware::PublicApi;
pub use path_params::{ChartsetIdParam, HashParam, PathParam};
pub use rate_limit::HttpRateLimiter;
pub use response_cache::ResponseCache;
pub use routes::{LongPolling, Routes};
pub use server::Server;
pub use source_pages::{InvalidSourcePage, SourcePage, SourcePages};
pub use text_body::{MediaType, NoBody, RequestHeaders, TextBody, not_modified, uncached_json};
pub use worker::{Worker, WorkerThreads};
