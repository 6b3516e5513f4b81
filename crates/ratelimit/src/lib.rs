//! How often an address may ask: the exact sliding window of the contract, for all replicas together.
//!
//! - [`TrustedProxies`] finds the [`ClientAddress`] of a request.
//! - [`Limiter`] decides: from memory, in Redis, or, while Redis is away, for this replica alone.
//!
//! No HTTP types appear here: the layer in front turns a [`Decision`] into an answer.

mod client_address;
mod config;
mod decision;
mod failures;
mod group;
mod limiter;
mod refusals;
mod stand_in;
mod trusted_proxies;
mod window_script;

pub use client_address::ClientAddress;
pub use config::{InvalidWindow, LimiterConfig, Window};
pub use decision::{Decision, Scope};
pub use group::{Group, Limits};
pub use limiter::{DecisionCounts, Limiter, PreparedCheck};
pub use trusted_proxies::{MalformedNetwork, TrustedProxies};
