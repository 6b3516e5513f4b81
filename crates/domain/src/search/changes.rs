//! The changes that a search engine with its own documents lacks.

use async_trait::async_trait;

use crate::{Origin, Position, ReadError};

/// The changes of chartsets after a position, which an index has not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnappliedChanges {
    /// The server that was asked.
    pub origin: Origin,
    /// When the oldest one was made, numbered or not, in Unix epoch milliseconds; `None` if there is none. 0
    /// for a position that the feed does not continue from: changes of any age may be missing.
    pub oldest_ms: Option<i64>,
    /// When the server was asked, by its clock, in Unix epoch milliseconds.
    pub asked_ms: i64,
    /// How many there are, up to [`MAX_COUNT`](Self::MAX_COUNT).
    pub count: u64,
}

impl UnappliedChanges {
    /// Changes are counted up to this number.
    pub const MAX_COUNT: u64 = 10_000;
}

/// Reports how far an index lags behind the catalogue. Implemented by the store.
#[async_trait]
pub trait CatalogueChanges: Send + Sync {
    /// The changes of chartsets after the position.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the changes cannot be read.
    async fn unapplied(&self, position: Position) -> Result<UnappliedChanges, ReadError>;
}
