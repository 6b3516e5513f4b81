//! The two indexes of a node, and the position that is stored beside each of them.

use std::num::ParseIntError;

use chart_index_domain::{ChartsetId, Position};
use serde::{Deserialize, Serialize};

/// The version of the documents and settings that this program reads and writes. It increases with every change
/// of either, and so of the list item in the documents. It is part of the names of the indexes: those of
/// another format are neither searched nor written to. So `follow` of a new version builds its index while that
/// of the old version keeps the old one up to date, and either can be started again.
pub const FORMAT: u32 = 8;

/// One of the two indexes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The index that is searched.
    Live,
    /// The index that a rebuild fills.
    Rebuild,
}

/// A chartset that is left out of an index because its document is larger than the node accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    /// The chartset that is left out.
    pub id: ChartsetId,
    /// The size of its document in bytes.
    pub bytes: u64,
}

/// The id of the [`StateDocument`] in a state index.
pub(crate) const STATE_ID: &str = "state";

/// The document with the position of an index in the change feed, up to which it has all changes. The position
/// is text: Meilisearch stores JSON numbers with 53 bits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    id: String,
    origin: String,
    sequence: String,
}

impl StateDocument {
    pub(crate) fn new(position: Position) -> Self {
        let Position { origin, sequence } = position;
        Self { id: STATE_ID.to_owned(), origin: origin.to_string(), sequence: sequence.to_string() }
    }

    pub(crate) fn position(&self) -> Result<Position, ParseIntError> {
        Ok(Position { origin: self.origin.parse()?, sequence: self.sequence.parse()? })
    }
}
