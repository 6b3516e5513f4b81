//! Errors of reads and writes of objects.

use std::error::Error;
use std::fmt;
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
    #[error("cannot open the object store: {0}")]
    Invalid(ClientError),
    /// The store is unavailable, or refuses access. A retry may succeed.
    #[error("the object store is unavailable: {0}")]
    Unavailable(ClientError),
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

/// An error of the client of the store. Its text has the texts of its sources, so it has no source itself.
#[derive(Debug)]
pub struct ClientError(object_store::Error);

impl From<object_store::Error> for ClientError {
    fn from(error: object_store::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        f.write_str(&text)?;
        // `object_store` repeats its sources, apart from the innermost ones.
        let innermost = successors(self.0.source(), |&error| error.source()).last().map(ToString::to_string);
        match innermost {
            Some(cause) if !text.contains(&cause) => write!(f, ": {cause}"),
            _ => Ok(()),
        }
    }
}
