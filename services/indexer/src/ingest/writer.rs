//! Storing song folders that were read.

use chart_index_domain::{ChartsetDraft, NoteHash};
use chart_index_store::{IngestFingerprint, PutEffect, Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::now_ms;
use super::outcome::{PlaceOutcome, StoredChartset};
use super::reader::StoredHashes;
use super::retry::retried;
use crate::report::{ChartsetLine, Outcome, error_chain};
use crate::song_folder::{Refused, SongFolder};

/// Stores song folders.
#[derive(Clone)]
pub(super) struct Writer {
    /// `None` in a dry run.
    pub(super) store: Option<Store>,
    /// The charts that this run has stored.
    pub(super) stored: StoredHashes,
    /// Where charts that changed are announced.
    pub(super) changed: mpsc::UnboundedSender<Vec<NoteHash>>,
    /// Ends the waiting for a store that is unavailable.
    pub(super) stop: CancellationToken,
}

/// What became of one place.
#[derive(Default)]
pub(super) struct PlaceDone {
    /// Its chartsets.
    pub(super) chartsets: Vec<ChartsetLine>,
    /// What in it is not indexed.
    pub(super) refused: Vec<Refused>,
    /// What is to be recorded of it; `None` where it is to be read again the next time.
    pub(super) fingerprint: Option<IngestFingerprint>,
}

impl Writer {
    /// Stores the song folders of a place. A chartset that PostgreSQL rejects is reported as failed.
    ///
    /// # Errors
    /// The store failed, and would with any other chartset.
    pub(super) async fn store(
        &self,
        folders: Vec<SongFolder>,
        fingerprint: Option<IngestFingerprint>,
    ) -> Result<PlaceDone, StoreError> {
        let mut outcome = PlaceOutcome::default();
        let mut done = PlaceDone::default();
        let mut complete = true;
        for folder in folders {
            complete &= !folder.is_unreadable;
            outcome.refused.extend(folder.refused);
            if let Some(draft) = &folder.draft {
                let line = self.store_draft(draft).await?;
                complete &= line.outcome != Outcome::Failed;
                done.chartsets.push(line);
                outcome.chartsets.push(StoredChartset::of(draft));
            }
        }
        if let Some(mut fingerprint) = fingerprint.filter(|_| complete)
            && let Ok(written) = serde_json::to_string(&outcome)
        {
            fingerprint.outcome = written;
            done.fingerprint = Some(fingerprint);
        }
        done.refused = outcome.refused;
        Ok(done)
    }

    async fn store_draft(&self, draft: &ChartsetDraft) -> Result<ChartsetLine, StoreError> {
        let line = ChartsetLine::new(Outcome::Read, draft.path.clone(), draft.id, draft.charts.len());
        let Some(store) = &self.store else { return Ok(line) };
        let mut attempts = 0;
        let put = || {
            attempts += 1;
            store.put_chartset(draft, now_ms())
        };
        let put = match retried(&self.stop, put).await {
            Err(error) if error.is_rejected() => {
                let reason = Some(error_chain(&error));
                return Ok(ChartsetLine { outcome: Outcome::Failed, reason, ..line });
            }
            put => put?,
        };
        self.stored.extend(draft);
        // An attempt whose connection was lost may have stored the chartset all the same, so that the next one finds it
        // unchanged.
        if put.effect != PutEffect::Unchanged || attempts > 1 {
            // The receiver is there until the ingest is over.
            let _ = self
                .changed
                .send(draft.charts.iter().map(|chart| chart.hash).chain(put.dropped_charts).collect());
        }
        Ok(ChartsetLine { outcome: put.effect.into(), removed: put.removed, ..line })
    }
}

impl From<PutEffect> for Outcome {
    fn from(effect: PutEffect) -> Self {
        match effect {
            PutEffect::Added => Self::Added,
            PutEffect::Unchanged => Self::Unchanged,
            PutEffect::Updated => Self::Updated,
        }
    }
}
