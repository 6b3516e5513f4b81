//! The two indexes of a node, and the state that is stored beside each of them.

use std::num::ParseIntError;

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, HistoryDigest, RecordedCheckpoint};
use serde::{Deserialize, Serialize};

/// The version of the documents and settings that this program reads and writes. It increases with every change
/// of either, and so of the list item in the documents. An index of another format is not searched and has to
/// be rebuilt.
pub const FORMAT: u32 = 2;

/// The state of an index, stored beside it in the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexState {
    /// The changes of the catalogue that have been applied to the index.
    pub checkpoint: Checkpoint,
    /// The history of the catalogue at the checkpoint; `None` where it was not recorded.
    pub history: Option<HistoryDigest>,
    /// The version of its documents and settings: [`FORMAT`] if this program can search it.
    pub format: u32,
}

impl IndexState {
    /// The position in the history of the catalogue from which the next changes are applied.
    #[must_use]
    pub const fn recorded(&self) -> RecordedCheckpoint {
        RecordedCheckpoint { checkpoint: self.checkpoint, history: self.history }
    }
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

/// The document with the state of an index. Checkpoint and history are text: Meilisearch stores JSON numbers
/// with 53 bits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    id: String,
    checkpoint: String,
    /// Older versions of this program ignore this attribute and do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<String>,
    format: u32,
}

impl StateDocument {
    pub(crate) fn new(state: IndexState) -> Self {
        let IndexState { checkpoint, history, format } = state;
        let history = history.map(|history| history.to_string());
        Self { id: STATE_ID.to_owned(), checkpoint: checkpoint.to_string(), history, format }
    }

    pub(crate) fn parse(self) -> Result<IndexState, ParseIntError> {
        let checkpoint = Checkpoint(self.checkpoint.parse()?);
        let history = self.history.map(|history| history.parse()).transpose()?;
        Ok(IndexState { checkpoint, history, format: self.format })
    }
}
