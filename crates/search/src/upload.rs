//! Sends documents in requests of bounded size.

use chart_index_domain::ChartsetId;
use chart_index_domain::search::IndexedChartset;
use meilisearch_sdk::task_info::TaskInfo;
use serde_json::value::{RawValue, to_raw_value};

use crate::document::{ChartsetDocument, PRIMARY_KEY};
use crate::node::Node;
use crate::retry::retry;
use crate::{Quarantined, SearchError, Target};

pub(crate) const PUT: &str = "index documents";

/// The maximum number of documents per request.
pub(crate) const DOCUMENTS_PER_REQUEST: usize = 400;
/// The maximum size of a request, unless a single document is larger. Meilisearch accepts 100 MB by default
/// (`--http-payload-size-limit`); a document usually has 2 KB.
const BYTES_PER_REQUEST: usize = 8 * 1024 * 1024;

/// The outcome of sending documents.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    /// The tasks that index the documents, each with their number.
    pub(crate) tasks: Vec<(TaskInfo, usize)>,
    /// The chartsets whose document the node rejects even alone in a request.
    pub(crate) rejected: Vec<Quarantined>,
}

#[derive(Debug)]
struct SerializedDocument {
    id: ChartsetId,
    json: Box<RawValue>,
}

impl SerializedDocument {
    fn new(set: &IndexedChartset) -> Result<Self, SearchError> {
        let json = to_raw_value(&ChartsetDocument::new(set))
            .map_err(|error| SearchError::invalid_response(PUT, error))?;
        Ok(Self { id: set.chartset.id, json })
    }

    fn bytes(&self) -> usize {
        self.json.get().len()
    }
}

impl Node {
    /// Sends the documents of the chartsets.
    pub(crate) async fn upload(
        &self,
        target: Target,
        sets: &[IndexedChartset],
    ) -> Result<Upload, SearchError> {
        let (mut upload, mut batch, mut bytes) = (Upload::default(), Vec::new(), 0);
        for set in sets {
            let document = SerializedDocument::new(set)?;
            if is_full(batch.len(), bytes, document.bytes()) {
                self.upload_batch(target, &batch, &mut upload).await?;
                batch.clear();
                bytes = 0;
            }
            bytes += document.bytes();
            batch.push(document);
        }
        if !batch.is_empty() {
            self.upload_batch(target, &batch, &mut upload).await?;
        }
        Ok(upload)
    }

    /// Sends a batch. Where the node rejects it as too large, sends each half, down to single documents.
    async fn upload_batch(
        &self,
        target: Target,
        batch: &[SerializedDocument],
        upload: &mut Upload,
    ) -> Result<(), SearchError> {
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            match (retry(|| self.post(target, part)).await, part) {
                (Ok(task), part) => upload.tasks.push((task, part.len())),
                (Err(error), [document]) if error.is_payload_too_large() => {
                    upload.rejected.push(Quarantined { id: document.id, bytes: document.bytes() as u64 });
                }
                (Err(error), part) if error.is_payload_too_large() => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(())
    }

    async fn post(&self, target: Target, part: &[SerializedDocument]) -> Result<TaskInfo, SearchError> {
        let documents: Vec<&RawValue> = part.iter().map(|document| &*document.json).collect();
        let sent = self.index(target).add_or_replace(&documents, Some(PRIMARY_KEY)).await;
        sent.map_err(SearchError::from_sdk(PUT))
    }
}

/// Whether a batch of this size has to be sent before a document of `next` bytes is added.
const fn is_full(documents: usize, bytes: usize, next: usize) -> bool {
    documents > 0 && (documents == DOCUMENTS_PER_REQUEST || bytes + next > BYTES_PER_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded_in_documents_and_bytes() {
        for (documents, bytes, next, full) in [
            (0, 0, 200 * 1024 * 1024, false),
            (1, 10, 10, false),
            (399, 10, 10, false),
            (400, 10, 10, true),
            (1, BYTES_PER_REQUEST - 10, 10, false),
            (1, BYTES_PER_REQUEST - 10, 11, true),
        ] {
            assert_eq!(is_full(documents, bytes, next), full, "{documents} {bytes} {next}");
        }
    }
}
