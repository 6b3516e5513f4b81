//! What came of a place, as it is recorded beside its fingerprint: enough to report an unchanged place without
//! decoding it.

use chart_index_domain::{ChartsetDraft, ChartsetId};
use chart_index_store::{ExpectedChartset, content_fingerprint};
use serde::{Deserialize, Serialize};

use crate::song_folder::Refused;

/// What came of a place.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PlaceOutcome {
    pub(super) chartsets: Vec<StoredChartset>,
    pub(super) refused: Vec<Refused>,
}

/// A chartset as it was stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredChartset {
    pub(super) id: ChartsetId,
    pub(super) path: String,
    pub(super) charts: usize,
    /// The fingerprint of its content, in hexadecimal digits.
    fingerprint: String,
    /// Not recorded: whether the chartset is removed now.
    #[serde(skip)]
    pub(super) removed: bool,
}

impl StoredChartset {
    /// The chartset that a draft was stored as.
    pub(super) fn of(draft: &ChartsetDraft) -> Self {
        let fingerprint = blake3::Hash::from_bytes(content_fingerprint(draft)).to_hex().to_string();
        let (id, path, charts) = (draft.id, draft.path.clone(), draft.charts.len());
        Self { id, path, charts, fingerprint, removed: false }
    }

    /// The chartset as the store is expected to have it; `None` where the record is damaged.
    pub(super) fn expected(&self) -> Option<ExpectedChartset> {
        let fingerprint = *blake3::Hash::from_hex(&self.fingerprint).ok()?.as_bytes();
        Some(ExpectedChartset { id: self.id, fingerprint, path: self.path.clone() })
    }
}
