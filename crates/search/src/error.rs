//! The errors of requests to a node.

use std::error::Error;
use std::time::Duration;

use chart_index_domain::Position;
use meilisearch_sdk::errors::Error as SdkError;

use crate::transport::TransportError;

/// An operation on a node, or on all of them, failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The configuration is invalid, for this reason.
    #[error("{0}")]
    Configuration(&'static str),
    /// There was no response: the connection failed, or the request timed out.
    #[error("{operation}: no response from Meilisearch")]
    Unreachable {
        /// The operation, e.g. `search`.
        operation: &'static str,
        /// The error of the HTTP client.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response had another status than expected.
    #[error("{operation}: Meilisearch responded {status} {code}: {message}")]
    ErrorResponse {
        /// The operation, e.g. `search`.
        operation: &'static str,
        /// The HTTP status of the response.
        status: u16,
        /// Meilisearch's error code, such as `index_not_found`; empty where a proxy responded.
        code: String,
        /// Meilisearch's error message.
        message: String,
        /// The value of `Retry-After`, at most a minute.
        retry_after: Option<Duration>,
    },
    /// The response cannot be parsed, contradicts itself, or does not match the request.
    #[error("{operation}: invalid response from Meilisearch")]
    InvalidResponse {
        /// The operation, e.g. `search`.
        operation: &'static str,
        /// What is wrong with the response.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Meilisearch enqueued a task, which then failed or was canceled.
    #[error("{operation}: task {task} of Meilisearch {status} {code}: {message}")]
    TaskFailed {
        /// The operation that enqueued the task.
        operation: &'static str,
        /// The uid that Meilisearch gave the task.
        task: u32,
        /// The status of the task: `failed` or `canceled`.
        status: String,
        /// Meilisearch's error code.
        code: String,
        /// Meilisearch's error message.
        message: String,
    },
    /// A task processed another number of documents than were sent.
    #[error("{operation}: {sent} documents sent, {done} processed")]
    CountMismatch {
        /// The operation that enqueued the task.
        operation: &'static str,
        /// The number of documents that were sent.
        sent: usize,
        /// The number of documents that Meilisearch reports as indexed or deleted.
        done: usize,
    },
    /// The live index has an earlier position than at the last probe, or none of this format: the node was
    /// restarted with other data, or its index was replaced.
    #[error("the index was replaced since the last probe")]
    IndexReplaced,
    /// The index has another position than the one from which changes were applied: the node was restarted with
    /// other data meanwhile.
    #[error("the position of the index is no longer {from}: the node was restarted with other data")]
    PositionChanged {
        /// The position from which changes were applied.
        from: Position,
        /// That of the index.
        position: Option<Position>,
    },
    /// No node can be searched: each is unavailable, busy, lagging, or without a usable index.
    #[error("no Meilisearch node can be searched")]
    NoUsableNode,
    /// The search timed out and had waited for a permit of the concurrency limit for most of that time.
    #[error("too many searches in flight")]
    AtCapacity,
}

impl SearchError {
    /// Whether the node reports that the index does not exist.
    #[must_use]
    pub fn is_index_not_found(&self) -> bool {
        matches!(self, Self::ErrorResponse { code, .. } | Self::TaskFailed { code, .. } if code == "index_not_found")
    }

    /// Whether the node reports that the document does not exist.
    pub(crate) fn is_document_not_found(&self) -> bool {
        matches!(self, Self::ErrorResponse { code, .. } if code == "document_not_found")
    }

    /// Whether the API key does not permit the request.
    pub(crate) const fn is_forbidden(&self) -> bool {
        matches!(self, Self::ErrorResponse { status: 403, .. })
    }

    /// Whether the request was larger than the node, or a proxy in front of it, accepts.
    pub(crate) const fn is_payload_too_large(&self) -> bool {
        matches!(self, Self::ErrorResponse { status: 413, .. })
    }

    /// Whether the same request may succeed soon: there was no response, or one that reports that the node is
    /// busy or unavailable.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::ErrorResponse { status: 408 | 429 | 500 | 502 | 503 | 504, .. }
        )
    }

    /// The value of `Retry-After`, if the response had one.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::ErrorResponse { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether another node may be searched instead: the connection could not be opened or broke, or the index
    /// is another one than was probed.
    pub(crate) fn permits_another_node(&self) -> bool {
        match self {
            Self::IndexReplaced => true,
            Self::Unreachable { source, .. } => {
                matches!(source.downcast_ref(), Some(TransportError::Disconnected(_)))
            }
            _ => false,
        }
    }

    pub(crate) fn from_sdk(operation: &'static str) -> impl Fn(SdkError) -> Self {
        move |error| match error {
            SdkError::Other(error) => match error.downcast::<TransportError>() {
                Ok(error) => Self::from_transport(operation, *error),
                Err(source) => Self::Unreachable { operation, source },
            },
            error => Self::InvalidResponse { operation, source: error.into() },
        }
    }

    /// A response that contradicts itself or does not match the request.
    pub(crate) fn invalid_response(
        operation: &'static str,
        reason: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::InvalidResponse { operation, source: reason.into() }
    }

    pub(crate) fn from_transport(operation: &'static str, error: TransportError) -> Self {
        match error {
            TransportError::Status { status, code, message, retry_after } => {
                Self::ErrorResponse { operation, status, code, message, retry_after }
            }
            TransportError::Configuration(reason) => Self::Configuration(reason),
            TransportError::InvalidBody(error) => Self::InvalidResponse { operation, source: error.into() },
            error => Self::Unreachable { operation, source: error.into() },
        }
    }
}
