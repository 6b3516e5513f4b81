//! Rate limits: an exact sliding window for each client address, shared by all replicas (docs/api.md, "Rate
//! limits").
//!
//! - [`TrustedProxies`] finds the [`ClientAddress`] of a request.
//! - [`Limiter`] decides: from a cached refusal, in Redis, or, while Redis is unavailable, by a local window of
//!   this replica.
//!
//! The crate does not depend on HTTP: the caller turns a [`Refusal`] into a response.

mod check_queue;
mod client_address;
mod config;
mod decision;
mod error_transitions;
mod group;
mod limiter;
mod local_window;
mod metrics;
mod refusal_cache;
mod trusted_proxies;
mod window_script;

pub use client_address::{ClientAddress, Network};
pub use config::LimiterConfig;
pub use decision::{Budget, Decision, Refusal, Scope};
pub use group::{Group, Limits, network_limit};
pub use limiter::{DecisionCounts, Limiter};
pub use trusted_proxies::{InvalidNetwork, TrustedProxies};
