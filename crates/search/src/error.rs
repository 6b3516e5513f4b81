//! What can go wrong with a node.

use std::error::Error;
use std::time::Duration;

use meilisearch_sdk::errors::Error as SdkError;

use crate::http::Failure;

/// A node did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(&'static str),
    /// There was no answer, or none in time.
    #[error("{operation}: no answer from Meilisearch")]
    Unreachable {
        /// What was asked for.
        operation: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer was an error.
    #[error("{operation}: Meilisearch answered {status} {code}: {message}")]
    Refused {
        /// What was asked for.
        operation: &'static str,
        /// The HTTP status.
        status: u16,
        /// The code of the error, e.g. `index_not_found`; empty where the answer was not Meilisearch's own.
        code: String,
        /// What Meilisearch says about it.
        message: String,
        /// How long to stay away, at most a minute.
        retry_after: Option<Duration>,
    },
    /// The answer cannot be read, or contradicts itself or what was asked.
    #[error("{operation}: an answer of Meilisearch that makes no sense")]
    Nonsense {
        /// What was asked for.
        operation: &'static str,
        /// What is wrong with the answer.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Meilisearch took the work and did not finish it.
    #[error("{operation}: task {task} of Meilisearch {status} {code}: {message}")]
    Task {
        /// What was asked for.
        operation: &'static str,
        /// The number of the task.
        task: u32,
        /// How it ended, in Meilisearch's words.
        status: String,
        /// The code of its error.
        code: String,
        /// What Meilisearch says about it.
        message: String,
    },
    /// Fewer or more documents were taken than were sent.
    #[error("{operation}: {sent} documents sent, {done} done")]
    Count {
        /// What was asked for.
        operation: &'static str,
        /// How many documents were sent.
        sent: usize,
        /// How many Meilisearch says it indexed or deleted.
        done: usize,
    },
    /// No node can be asked: each is away, busy, too old, or older than the generation that was asked for.
    #[error("no node of Meilisearch can be asked")]
    NoNode,
    /// As many searches as may be under way were so until the deadline.
    #[error("too many searches at once")]
    Crowded,
    /// A rebuilt index would take the place of one that is newer than itself.
    #[error("the rebuilt index holds less of the catalogue than the live one")]
    Outdated,
}

impl SearchError {
    /// Whether the node says that there is no such index.
    #[must_use]
    pub fn is_index_not_found(&self) -> bool {
        matches!(self, Self::Refused { code, .. } | Self::Task { code, .. } if code == "index_not_found")
    }

    /// Whether the node says that there is no such document.
    pub(crate) fn is_document_not_found(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "document_not_found")
    }

    /// Whether the key of this program does not allow what was asked for.
    pub(crate) const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    /// Whether the request had more bytes than the node, or a proxy before it, accepts.
    pub(crate) const fn is_payload_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: 413, .. })
    }

    /// Whether the same request may succeed soon: there was no response, or one that says that the node is busy or
    /// unavailable.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Refused { status: 408 | 429 | 500 | 502 | 503 | 504, .. }
        )
    }

    /// Whether there was no connection, or it broke: what was asked for may be asked of another node.
    pub(crate) fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Unreachable { source, .. }
            if matches!(source.downcast_ref(), Some(Failure::NoAnswer(_))))
    }

    /// What the SDK says, in this crate's words.
    pub(crate) fn of(operation: &'static str) -> impl Fn(SdkError) -> Self {
        move |error| match error {
            SdkError::Other(error) => match error.downcast::<Failure>() {
                Ok(failure) => Self::from_failure(operation, *failure),
                Err(source) => Self::Unreachable { operation, source },
            },
            error => Self::Nonsense { operation, source: error.into() },
        }
    }

    /// An answer that contradicts itself or what was asked.
    pub(crate) fn nonsense(operation: &'static str, reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Nonsense { operation, source: reason.into() }
    }

    fn from_failure(operation: &'static str, failure: Failure) -> Self {
        match failure {
            Failure::Status { status, code, message, retry_after } => {
                Self::Refused { operation, status, code, message, retry_after }
            }
            Failure::Unreadable(error) => Self::Nonsense { operation, source: error.into() },
            failure => Self::Unreachable { operation, source: failure.into() },
        }
    }
}
