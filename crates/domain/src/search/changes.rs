//! How far an engine that keeps documents of its own has followed the catalogue.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

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

/// Identifies the history that a checkpoint belongs to: a digest of random values that the last changes before it have.
///
/// A database that goes back to an earlier state gives the ids and numbers of lost changes to other ones. Those have
/// other random values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryDigest(pub u64);

impl fmt::Display for HistoryDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for HistoryDigest {
    type Err = ParseIntError;

    /// Reads the 16 hexadecimal digits that [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// A checkpoint as an index records it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedCheckpoint {
    /// Which changes the index holds.
    pub checkpoint: Checkpoint,
    /// Of which history; `None` where there is no change yet, or where the index was last written by a version that did
    /// not record it.
    pub history: Option<HistoryDigest>,
}

impl From<Checkpoint> for RecordedCheckpoint {
    fn from(checkpoint: Checkpoint) -> Self {
        Self { checkpoint, history: None }
    }
}

/// Tells how old a checkpoint has become: implemented where the changes of the catalogue are recorded.
#[async_trait]
pub trait CatalogueChanges: Send + Sync {
    /// When the oldest change was made that the checkpoint does not hold, in Unix epoch milliseconds; `None` when
    /// it holds all of them. 0 for a checkpoint of another history of the catalogue.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the record of changes cannot be read.
    async fn oldest_unapplied_ms(&self, recorded: RecordedCheckpoint) -> Result<Option<i64>, ReadError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_as_it_is_written() {
        for digest in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef].map(HistoryDigest) {
            assert_eq!(digest.to_string().len(), 16);
            assert_eq!(digest.to_string().parse(), Ok(digest));
        }
        assert!("x".parse::<HistoryDigest>().is_err());
    }
}
