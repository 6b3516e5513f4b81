//! What can go wrong with a node.

use std::error::Error;
use std::time::Duration;

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
        /// How long to stay away.
        retry_after: Option<Duration>,
    },
    /// The answer cannot be read, or contradicts itself.
    #[error("{operation}: an answer of Meilisearch that makes no sense: {reason}")]
    Nonsense {
        /// What was asked for.
        operation: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// Meilisearch took the work and did not finish it.
    #[error("{operation}: task {task} of Meilisearch {outcome}: {message}")]
    Task {
        /// What was asked for.
        operation: &'static str,
        /// The number of the task.
        task: u32,
        /// How it ended.
        outcome: &'static str,
        /// What Meilisearch says about it.
        message: String,
    },
    /// Fewer or more documents were indexed than were sent.
    #[error("{operation}: {sent} documents sent, {indexed} indexed")]
    Count {
        /// What was asked for.
        operation: &'static str,
        /// How many documents were sent.
        sent: usize,
        /// How many Meilisearch says it indexed.
        indexed: usize,
    },
}

impl SearchError {
    /// Whether the node says that there is no such index.
    #[must_use]
    pub fn is_index_not_found(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "index_not_found")
    }
}
