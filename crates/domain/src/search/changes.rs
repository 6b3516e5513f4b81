//! How far an engine that keeps documents of its own has followed the catalogue.

use std::fmt;

use async_trait::async_trait;

use crate::ReadError;

/// A point in the history of the catalogue: every change of a transaction before this one is applied.
///
/// It is a transaction horizon of PostgreSQL, not the number of a change: a change that was numbered early and
/// committed late lies on the right side of it. It never goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint(pub u64);

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Tells how old a checkpoint has become: implemented where the changes of the catalogue are recorded.
#[async_trait]
pub trait CatalogueChanges: Send + Sync {
    /// When the oldest change was made that the checkpoint does not hold, in Unix epoch milliseconds; `None` when
    /// it holds all of them.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the record of changes cannot be read.
    async fn oldest_after(&self, checkpoint: Checkpoint) -> Result<Option<i64>, ReadError>;
}
