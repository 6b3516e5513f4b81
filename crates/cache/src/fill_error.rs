//! Errors of fills.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a response could not be read. All requests that wait for a fill share its error.
pub enum FillError<E> {
    /// The fill failed, and no older response was cached.
    Failed(Arc<E>),
    /// The fill took longer than [`CacheConfig::fill_timeout`](crate::CacheConfig::fill_timeout).
    TimedOut,
    /// Too many fills are in flight, or too many requests wait for them.
    Overloaded,
    /// The fill panicked, or the runtime is shutting down.
    Abandoned,
}

impl<E> Clone for FillError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::TimedOut => Self::TimedOut,
            Self::Overloaded => Self::Overloaded,
            Self::Abandoned => Self::Abandoned,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => formatter.debug_tuple("Failed").field(error).finish(),
            Self::TimedOut => formatter.write_str("TimedOut"),
            Self::Overloaded => formatter.write_str("Overloaded"),
            Self::Abandoned => formatter.write_str("Abandoned"),
        }
    }
}

impl<E> fmt::Display for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Failed(_) => "fill the cache: the read failed",
            Self::TimedOut => "fill the cache: the read timed out",
            Self::Overloaded => "fill the cache: too many reads are in flight",
            Self::Abandoned => "fill the cache: the read was abandoned",
        })
    }
}

impl<E: Error + 'static> Error for FillError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::TimedOut | Self::Overloaded | Self::Abandoned => None,
        }
    }
}
