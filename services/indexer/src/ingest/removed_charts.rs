//! Finds removed charts that no file has any more. Their files have other notes now, or this version reads them
//! in another way: as another chart, which is not removed.

use std::collections::HashSet;
use std::sync::Arc;

use chart_index_domain::NoteHash;
use chart_index_store::{RemovedMember, Store};
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::song_folder::SongFolder;

/// The removed charts of an ingest.
#[derive(Default)]
pub(super) struct RemovedCharts {
    /// The erased ones, which are in no chartset: only the recorded outcomes tell which files had them.
    pub(super) erased: Arc<HashSet<NoteHash>>,
    /// Where removed charts were before the ingest.
    before: Vec<RemovedMember>,
    /// The erased charts that files have.
    found: HashSet<NoteHash>,
}

impl RemovedCharts {
    /// Reads which charts are removed, and where they are.
    pub(super) async fn read(store: &Store, stop: &CancellationToken) -> anyhow::Result<Self> {
        let erased = retry_store_call(stop, || store.erased_charts()).await?;
        let before = retry_store_call(stop, || store.removed_members()).await?;
        Ok(Self { erased: Arc::new(erased), before, found: HashSet::new() })
    }

    /// Notes the erased charts of an input that was decoded, and those that it had when it was last decoded.
    pub(super) fn add_decoded(&mut self, before: Vec<RemovedMember>, folders: &[SongFolder]) {
        if folders.iter().all(|folder| !folder.is_unreadable) {
            self.before.extend(before);
        }
        let charts = folders.iter().flat_map(|folder| &folder.draft).flat_map(|draft| &draft.charts);
        self.found.extend(charts.map(|chart| chart.hash).filter(|hash| self.erased.contains(hash)));
    }

    /// Notes the erased charts of an input that is unchanged.
    pub(super) fn add_unchanged(&mut self, members: impl IntoIterator<Item = RemovedMember>) {
        self.found.extend(members.into_iter().map(|member| member.chart));
    }

    /// The removed charts that were in files before the ingest, and are in none after it.
    pub(super) async fn unmatched(
        self,
        store: &Store,
        stop: &CancellationToken,
    ) -> anyhow::Result<Vec<RemovedMember>> {
        let Self { erased, before, found } = self;
        let charts: Vec<NoteHash> = before.iter().map(|member| member.chart).collect();
        if charts.is_empty() {
            return Ok(Vec::new());
        }
        let missing = retry_store_call(stop, || store.removed_without_chartset(&charts)).await?;
        let is_unmatched = |RemovedMember { chart, .. }: &RemovedMember| {
            // One that was erased during the ingest has left its chartsets for that reason.
            missing.get(chart) == Some(&erased.contains(chart)) && !found.contains(chart)
        };
        Ok(before.into_iter().filter(is_unmatched).collect())
    }
}
