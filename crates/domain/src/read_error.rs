//! What can go wrong when the index is read.

use std::error::Error;

/// A read of the index that gave no answer. Whether to come back later is all that a caller can act on; the
/// cause is for the log.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store or engine is away, starting, or too busy: the same read may succeed later.
    #[error("{operation}: not available")]
    Unavailable {
        /// What was being read, e.g. `look up chart`.
        operation: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store or engine answered with something that a correct index never holds or says.
    #[error("{operation}: failed")]
    Failed {
        /// What was being read.
        operation: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}
