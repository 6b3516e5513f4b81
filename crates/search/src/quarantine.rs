//! Chartsets that a node rejects because their documents are too large.
//!
//! They are left out of the index, so that one chartset does not block all others. The node itself stores them:
//! the state index, which also has the position, gets a document for each. Writing a chartset is tried again
//! when it changes, and by every rebuild.

use std::collections::HashSet;

use chart_index_domain::ChartsetId;
use meilisearch_sdk::documents::DocumentsQuery;
use serde::Deserialize;

use crate::document::PRIMARY_KEY;
use crate::tasks::check_count;
use crate::upload::DOCUMENTS_PER_REQUEST;
use crate::{IndexWriter, Quarantined, SearchError, Target};

/// A document of the state index: a quarantined chartset, or the state itself, which has no size and another
/// kind of id.
#[derive(Debug, Deserialize)]
struct StateEntry {
    id: String,
    bytes: Option<u64>,
}

const READ: &str = "read the quarantined chartsets";
const RECORD: &str = "record the quarantined chartsets";

impl IndexWriter {
    /// The chartsets that are left out of the index; empty where there is no index.
    pub async fn read_quarantined(&self, target: Target) -> Result<Vec<Quarantined>, SearchError> {
        let index = self.node.client.index(self.node.state_uid(target));
        let mut quarantined = Vec::new();
        let mut offset = 0;
        loop {
            let mut query = DocumentsQuery::new(&index);
            query.with_offset(offset).with_limit(DOCUMENTS_PER_REQUEST).with_fields([PRIMARY_KEY, "bytes"]);
            let entries: Vec<StateEntry> = match query.execute().await.map_err(SearchError::from_sdk(READ)) {
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

    /// Updates the quarantine after a batch: adds the chartsets that were rejected, and removes those that were
    /// written. Call it before setting the position that covers the batch.
    pub async fn record_quarantine(
        &self,
        target: Target,
        before: &[Quarantined],
        written: &[ChartsetId],
        rejected: &[Quarantined],
    ) -> Result<(), SearchError> {
        let index = self.node.client.index(self.node.state_uid(target));
        for chunk in rejected.chunks(DOCUMENTS_PER_REQUEST) {
            let task = index
                .add_or_replace(chunk, Some(PRIMARY_KEY))
                .await
                .map_err(SearchError::from_sdk(RECORD))?;
            check_count(
                RECORD,
                chunk.len(),
                self.node.wait_for_task(RECORD, &task).await?.indexed_documents,
            )?;
        }
        let released = released(before, written, rejected);
        for chunk in released.chunks(DOCUMENTS_PER_REQUEST) {
            let task = index.delete_documents(chunk).await.map_err(SearchError::from_sdk(RECORD))?;
            self.node.wait_for_task(RECORD, &task).await?;
        }
        Ok(())
    }
}

/// The chartsets that leave the quarantine.
fn released(before: &[Quarantined], written: &[ChartsetId], rejected: &[Quarantined]) -> Vec<String> {
    let rejected: HashSet<ChartsetId> = rejected.iter().map(|set| set.id).collect();
    let written: HashSet<ChartsetId> = written.iter().copied().collect();
    let ids = before.iter().map(|set| set.id);
    ids.filter(|id| written.contains(id) && !rejected.contains(id)).map(|id| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_chartset_leaves_the_quarantine() {
        let id = |number: u64| ChartsetId::from_bytes(number.to_be_bytes());
        let quarantined = |number: u64| Quarantined { id: id(number), bytes: 1 };
        let before = [1, 2, 3].map(quarantined);
        let released = released(&before, &[2, 3, 4].map(id), &[quarantined(3)]);
        assert_eq!(released, [id(2).to_string()]);
    }
}
