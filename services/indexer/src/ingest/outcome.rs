//! The recorded outcome of an input, from which an unchanged input is reported.

use std::collections::{HashMap, HashSet};

use chart_index_domain::{ChartsetDraft, ChartsetId, NoteHash};
use chart_index_store::{ExpectedChartset, RemovedMember, content_fingerprint};
use serde::{Deserialize, Serialize};

use crate::song_folder::RefusedFile;

/// What an ingest stored and refused of an input, as recorded in [`InputFingerprint::outcome`]. If the input is
/// unchanged in a later run, its `InputReport` is made from it.
///
/// [`InputFingerprint::outcome`]: chart_index_store::InputFingerprint::outcome
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RecordedOutcome {
    pub(super) chartsets: Vec<StoredChartset>,
    pub(super) refused: Vec<RefusedFile>,
    /// The number of song folders in which nothing could be indexed.
    pub(super) refused_chartsets: u64,
}

impl RecordedOutcome {
    /// Sets `removed` of each chartset, and returns whether the store has them all. `stored` maps id and
    /// content fingerprint to `removed`.
    pub(super) fn confirm(&mut self, stored: &HashMap<(ChartsetId, [u8; 32]), bool>) -> bool {
        let mut all = true;
        for chartset in &mut self.chartsets {
            let key = chartset.expected().map(|expected| (expected.id, expected.fingerprint));
            let removed = key.and_then(|key| stored.get(&key));
            all &= removed.is_some();
            chartset.removed = removed.is_some_and(|removed| *removed);
        }
        all
    }

    /// The erased charts that the files have.
    pub(super) fn erased(&self) -> impl Iterator<Item = RemovedMember> {
        self.chartsets.iter().flat_map(|chartset| {
            let member = |&chart| RemovedMember { chart, chartset: chartset.id, path: chartset.path.clone() };
            chartset.erased.iter().map(member)
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredChartset {
    pub(super) id: ChartsetId,
    pub(super) path: String,
    pub(super) charts: usize,
    /// The content fingerprint, in hexadecimal.
    fingerprint: String,
    /// The charts of the files that are not stored since they were erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    erased: Vec<NoteHash>,
    /// Whether the chartset is removed at present. Not recorded.
    #[serde(skip)]
    pub(super) removed: bool,
}

impl StoredChartset {
    pub(super) fn from_draft(draft: &ChartsetDraft, erased: &HashSet<NoteHash>) -> Self {
        let fingerprint = blake3::Hash::from_bytes(content_fingerprint(draft)).to_hex().to_string();
        let (id, path, charts) = (draft.id, draft.path.clone(), draft.charts.len());
        let hashes = draft.charts.iter().map(|chart| chart.hash);
        let erased = hashes.filter(|hash| erased.contains(hash)).collect();
        Self { id, path, charts, fingerprint, erased, removed: false }
    }

    /// The chartset that the store is expected to have. `None` if the record is invalid.
    pub(super) fn expected(&self) -> Option<ExpectedChartset> {
        let fingerprint = *blake3::Hash::from_hex(&self.fingerprint).ok()?.as_bytes();
        Some(ExpectedChartset { id: self.id, fingerprint, path: self.path.clone() })
    }
}
