//! Sets whose documents a node does not accept because they are too large.
//!
//! They are left out of the index, so that one set does not hold up all others. The node itself records them, beside
//! the checkpoint: a document for each in the state index, which goes where the checkpoint goes. A set is tried again
//! when it changes, and by every rebuild.

use std::collections::HashSet;

use chart_index_domain::ChartsetId;
use meilisearch_sdk::documents::DocumentsQuery;
use serde::{Deserialize, Serialize};

use crate::document::PRIMARY_KEY;
use crate::upload::DOCUMENTS_PER_REQUEST;
use crate::writer::counted;
use crate::{IndexWriter, SearchError, Target};

/// A set that is left out of an index because its document is larger than the node accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    /// The set.
    pub id: ChartsetId,
    /// The size of its document in bytes.
    pub bytes: u64,
}

/// A document of the state index: a set that is left out, or the state itself, which has another id and no size.
#[derive(Debug, Deserialize)]
struct StateEntry {
    id: String,
    bytes: Option<u64>,
}

const READ: &str = "read the sets that are left out of an index";
const RECORD: &str = "record the sets that are left out of an index";

impl IndexWriter {
    /// The sets that are left out of the index; none where there is no index.
    pub async fn quarantined(&self, target: Target) -> Result<Vec<Quarantined>, SearchError> {
        let index = self.node.client.index(self.node.state_uid(target));
        let mut quarantined = Vec::new();
        let mut offset = 0;
        loop {
            let mut query = DocumentsQuery::new(&index);
            query.with_offset(offset).with_limit(DOCUMENTS_PER_REQUEST).with_fields([PRIMARY_KEY, "bytes"]);
            let entries: Vec<StateEntry> = match query.execute().await.map_err(SearchError::of(READ)) {
                Err(error) if error.is_index_not_found() => return Ok(quarantined),
                documents => documents?.results,
            };
            offset += entries.len();
            let is_last = entries.len() < DOCUMENTS_PER_REQUEST;
            quarantined.extend(
                entries.into_iter().filter_map(|entry| {
                    Some(Quarantined { id: entry.id.parse().ok()?, bytes: entry.bytes? })
                }),
            );
            if is_last {
                return Ok(quarantined);
            }
        }
    }

    /// Records which sets are left out from now on: those that were, without the sets that were written since, and those
    /// that were refused. Before the checkpoint is set that stands for them.
    pub async fn record_quarantine(
        &self,
        target: Target,
        before: &[Quarantined],
        written: &[ChartsetId],
        refused: &[Quarantined],
    ) -> Result<(), SearchError> {
        let index = self.node.client.index(self.node.state_uid(target));
        for some in refused.chunks(DOCUMENTS_PER_REQUEST) {
            let task =
                index.add_or_replace(some, Some(PRIMARY_KEY)).await.map_err(SearchError::of(RECORD))?;
            counted(RECORD, some.len(), self.node.finished(RECORD, &task).await?.indexed_documents)?;
        }
        let released = released(before, written, refused);
        for some in released.chunks(DOCUMENTS_PER_REQUEST) {
            let task = index.delete_documents(some).await.map_err(SearchError::of(RECORD))?;
            self.node.finished(RECORD, &task).await?;
        }
        Ok(())
    }
}

/// The sets that were left out and no longer are.
fn released(before: &[Quarantined], written: &[ChartsetId], refused: &[Quarantined]) -> Vec<String> {
    let refused: HashSet<ChartsetId> = refused.iter().map(|set| set.id).collect();
    let written: HashSet<ChartsetId> = written.iter().copied().collect();
    let ids = before.iter().map(|set| set.id);
    ids.filter(|id| written.contains(id) && !refused.contains(id)).map(|id| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_was_written_and_not_refused_again_is_released() {
        let id = |number: u64| ChartsetId::from_bytes(number.to_be_bytes());
        let quarantined = |number: u64| Quarantined { id: id(number), bytes: 1 };
        let before = [1, 2, 3].map(quarantined);
        let released = released(&before, &[2, 3, 4].map(id), &[quarantined(3)]);
        assert_eq!(released, [id(2).to_string()]);
    }
}
