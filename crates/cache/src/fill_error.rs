//! Errors of fills.

use std::sync::Arc;

use chart_index_domain::ReadError;

/// Why a response could not be read. All requests that wait for a fill share its error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FillError {
    /// The fill failed, and no older response was cached.
    #[error("fill the cache: the read failed")]
    Failed(#[source] Arc<ReadError>),
    /// The fill took longer than [`CacheConfig::fill_timeout`](crate::CacheConfig::fill_timeout).
    #[error("fill the cache: the read timed out")]
    TimedOut,
    /// Too many fills are in flight, or too many requests wait for them.
    #[error("fill the cache: too many reads are in flight")]
    Overloaded,
    /// The fill panicked, or the runtime is shutting down.
    #[error("fill the cache: the read was abandoned")]
    Abandoned,
}
