//! The error of reads from the store and from search engines.

use std::error::Error;

/// A read from the store or a search engine failed. Callers only distinguish whether a retry or another
/// engine may succeed; the source is for the log.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store or engine is unavailable or starting: a retry, or another engine, may succeed.
    #[error("{operation}: unavailable")]
    Unavailable {
        /// The operation, e.g. `look up chart`.
        operation: &'static str,
        /// The error of the client library, for the log.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// This engine cannot run this query: another engine can.
    #[error("{operation}: not supported by the search engine")]
    Unsupported {
        /// The operation, e.g. `search chartsets`.
        operation: &'static str,
        /// What the engine cannot do, for the log.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The read failed in a way that a retry does not fix.
    #[error("{operation}: failed")]
    Failed {
        /// The operation, e.g. `look up chart`.
        operation: &'static str,
        /// The error of the client library or of a parser, for the log.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}
