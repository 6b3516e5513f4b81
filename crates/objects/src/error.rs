//! Errors of reads and writes of objects.

use std::error::Error;
use std::iter::successors;

use chart_index_instrumentation::ErrorType;

use crate::ObjectDigest;

/// An object could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// There is no such object.
    #[error("object {digest} is missing")]
    Missing {
        /// Its name.
        digest: ObjectDigest,
    },
    /// The bytes of the object are not those that it was stored with.
    #[error("object {digest} is damaged")]
    Damaged {
        /// Its name.
        digest: ObjectDigest,
    },
    /// A row names an object, and no object store is configured.
    #[error("the object store is not configured: set OBJECT_STORE_URL")]
    NotConfigured,
    /// The store cannot be opened with this configuration.
    #[error("cannot open the object store: {}", text_of(.0))]
    Invalid(object_store::Error),
    /// The store is unavailable, or refuses access. A retry may succeed.
    #[error("the object store is unavailable: {}", text_of(.0))]
    Unavailable(object_store::Error),
    /// The store did not respond in time, or too many reads and writes are in flight. A retry may succeed.
    #[error("the object store did not respond in time")]
    TimedOut,
}

impl ObjectError {
    /// Whether a retry may succeed.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TimedOut)
    }

    /// Whether the object itself is missing or damaged: others may be readable.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. })
    }

    pub(crate) const fn error_type(&self) -> ErrorType {
        match self {
            Self::TimedOut => ErrorType::Timeout,
            Self::Unavailable(_) => ErrorType::Unavailable,
            _ => ErrorType::Error,
        }
    }
}

/// The text of an error and of its causes. It contains those of its sources already, apart from the innermost
/// ones, so an [`ObjectError`] with this text has no source.
fn text_of(error: &object_store::Error) -> String {
    let text = error.to_string();
    match successors(error.source(), |&error| error.source()).last().map(ToString::to_string) {
        Some(cause) if !text.contains(&cause) => format!("{text}: {cause}"),
        _ => text,
    }
}
