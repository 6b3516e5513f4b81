//! Positions in the change feed, by which everything that follows the catalogue knows how far it is
//! (docs/formats/change-feed.md, decision 0021).

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::identity::impl_hex_bytes;
use crate::{ChartsetId, NoteHash};

/// Identifies the server that numbers changes, from its start on: another one may be in an earlier state of
/// the catalogue, and number other changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin(pub u64);

/// Identifies the database in which changes are numbered. A new database has another lineage, and so has one
/// to which a dump was restored: numbers of different lineages cannot be compared. A restart, a failover and a
/// recovery to a point in time keep the lineage: they number on after a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lineage([u8; 8]);

impl_hex_bytes!(Lineage, MalformedLineage, 8, "a lineage");

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Origin {
    type Err = ParseIntError;

    /// Reads the 16 hexadecimal digits that [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// A position in the change feed: every change up to this sequence is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The server that numbers changes at this position.
    pub origin: Origin,
    /// The number of the last change, below 2^53; 0 before the first one.
    pub sequence: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sequence.fmt(f)
    }
}

/// What the change feed has an entry of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A chart.
    Chart(NoteHash),
    /// A chartset.
    Chartset(ChartsetId),
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chart(hash) => write!(f, "chart {hash}"),
            Self::Chartset(id) => write!(f, "chartset {id}"),
        }
    }
}

impl From<NoteHash> for Entity {
    fn from(hash: NoteHash) -> Self {
        Self::Chart(hash)
    }
}

impl From<ChartsetId> for Entity {
    fn from(id: ChartsetId) -> Self {
        Self::Chartset(id)
    }
}

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangeType {
    /// It became known or shown.
    Added,
    /// It changed.
    Updated,
    /// It is no longer known or shown.
    Removed,
}

/// What has changed since an earlier poll of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CataloguePoll {
    /// The database.
    pub lineage: Lineage,
    /// The last number, and the server that the poll reached.
    pub position: Position,
    /// The last number of a removal by an operator; 0 if there was none.
    pub last_removal: u64,
    /// The last change of each entity with a number above [`complete_after`](Self::complete_after), in the
    /// order of the numbers.
    pub changes: Vec<CatalogueChange>,
    /// The number of the earlier poll, or a higher one if too much has changed since.
    pub complete_after: u64,
}

/// The last change of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueChange {
    /// The number of the change.
    pub sequence: u64,
    /// What has changed.
    pub entity: Entity,
    /// The number at which an operator last removed it, or a chart or chartset that responses about it show; 0
    /// if there was none.
    pub last_removal: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_round_trips_through_text() {
        for origin in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef].map(Origin) {
            assert_eq!(origin.to_string().len(), 16);
            assert_eq!(origin.to_string().parse(), Ok(origin));
        }
        assert!("x".parse::<Origin>().is_err());
    }
}
