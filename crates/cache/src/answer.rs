//! What is kept of an answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// What is kept of an answer, so that it can be given again without asking the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedAnswer {
    /// The finished body: the JSON text, or the bytes of a ROX file.
    Found {
        /// The body, as it was before any content encoding.
        body: Bytes,
        /// Its entity tag, without the quotes: at most 255 bytes.
        tag: Arc<str>,
    },
    /// The index does not hold it. No body is kept: what there is to say follows from the key, and so hundreds of
    /// thousands of unknown hashes fit in a few megabytes.
    NotFound,
}

impl CachedAnswer {
    /// A finished body with its tag.
    #[must_use]
    pub fn found(body: impl Into<Bytes>, tag: &str) -> Self {
        Self::Found { body: body.into(), tag: tag.into() }
    }

    /// Whether the index holds it.
    #[must_use]
    pub const fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }
}

/// Why there is no answer. All that wait for one fill share its error.
pub enum FillError<E> {
    /// The fill failed, and nothing was kept that could stand in.
    Failed(Arc<E>),
    /// The fill panicked, or the runtime is shutting down.
    Abandoned,
}

impl<E> Clone for FillError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::Abandoned => Self::Abandoned,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => formatter.debug_tuple("Failed").field(error).finish(),
            Self::Abandoned => formatter.write_str("Abandoned"),
        }
    }
}

impl<E> fmt::Display for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Failed(_) => "fill the cache: the read failed",
            Self::Abandoned => "fill the cache: the read was abandoned",
        })
    }
}

impl<E: Error + 'static> Error for FillError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::Abandoned => None,
        }
    }
}
