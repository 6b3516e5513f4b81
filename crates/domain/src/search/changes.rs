//! Checkpoints: up to which change a search engine with its own documents is up to date.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use async_trait::async_trait;

use crate::ReadError;

/// A point in the history of the catalogue: all changes of transactions before this one are applied.
///
/// A checkpoint is a transaction id of PostgreSQL, not a sequence number of a change: sequence numbers can
/// become visible out of order. It never decreases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint(pub u64);

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies the history that a checkpoint belongs to: a digest of the random tokens of the last changes
/// before it.
///
/// A database that is restored to an earlier state assigns the transaction ids and sequence numbers of lost
/// changes again, to changes with other tokens.
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

/// The checkpoint of an index, with the history that it belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedCheckpoint {
    /// The changes that are applied to the index.
    pub checkpoint: Checkpoint,
    /// The history of the checkpoint. `None` if there is no change yet, or if a version that did not record it
    /// wrote the index.
    pub history: Option<HistoryDigest>,
}

impl From<Checkpoint> for RecordedCheckpoint {
    fn from(checkpoint: Checkpoint) -> Self {
        Self { checkpoint, history: None }
    }
}

/// The changes after a checkpoint, which an index has not applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnappliedChanges {
    /// When the oldest one was made, in Unix epoch milliseconds; `None` if there is none. 0 for a checkpoint of
    /// another history: changes of any age may be missing.
    pub oldest_ms: Option<i64>,
    /// How many there are, up to [`MAX_COUNT`](Self::MAX_COUNT).
    pub count: u64,
}

impl UnappliedChanges {
    /// Changes are counted up to this number.
    pub const MAX_COUNT: u64 = 10_000;
}

/// Reports how far a checkpoint lags behind the catalogue. Implemented by the store.
#[async_trait]
pub trait CatalogueChanges: Send + Sync {
    /// The changes after the checkpoint.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while the changes cannot be read.
    async fn unapplied(&self, recorded: RecordedCheckpoint) -> Result<UnappliedChanges, ReadError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_round_trips_through_text() {
        for digest in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef].map(HistoryDigest) {
            assert_eq!(digest.to_string().len(), 16);
            assert_eq!(digest.to_string().parse(), Ok(digest));
        }
        assert!("x".parse::<HistoryDigest>().is_err());
    }
}
