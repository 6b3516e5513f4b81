//! The two indexes of a node, and the state that is stored beside each of them.

use std::num::ParseIntError;

use chart_index_domain::{ChartsetId, Origin, Position};
use serde::{Deserialize, Serialize};

/// The version of the documents and settings that this program reads and writes. It increases with every change
/// of either, and so of the list item in the documents. An index of another format is not searched and has to
/// be rebuilt.
pub const FORMAT: u32 = 4;

/// The state of an index, stored beside it in the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexState {
    /// The position in the change feed up to which the index has all changes. Not known (0) if the format is
    /// not [`FORMAT`].
    pub position: Position,
    /// The version of its documents and settings: [`FORMAT`] if this program can search it.
    pub format: u32,
}

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

/// The id of the document with the [`IndexState`] in a state index.
pub(crate) const STATE_ID: &str = "state";

/// The document with the state of an index. The position is text: Meilisearch stores JSON numbers with 53 bits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    id: String,
    #[serde(default)]
    origin: String,
    #[serde(default)]
    sequence: String,
    format: u32,
}

impl StateDocument {
    /// The state of an index in the format [`FORMAT`].
    pub(crate) fn new(position: Position) -> Self {
        let Position { origin, sequence } = position;
        let id = STATE_ID.to_owned();
        Self { id, origin: origin.to_string(), sequence: sequence.to_string(), format: FORMAT }
    }

    pub(crate) fn parse(self) -> Result<IndexState, ParseIntError> {
        let format = self.format;
        if format != FORMAT {
            return Ok(IndexState { position: Position { origin: Origin(0), sequence: 0 }, format });
        }
        let position = Position { origin: self.origin.parse()?, sequence: self.sequence.parse()? };
        Ok(IndexState { position, format })
    }
}
