//! Stores decoded song folders.

use std::collections::HashSet;
use std::sync::Arc;

use chart_index_cli::Causes;
use chart_index_domain::{ChartsetDraft, NoteHash};
use chart_index_instrumentation::child_span;
use chart_index_store::{InputFingerprint, PutEffect, StoreError};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::batches::{BATCH, Batches};
use super::outcome::{RecordedOutcome, StoredChartset};
use super::reader::StoredHashes;
use crate::report::{ChartsetLine, ChartsetOutcome};
use crate::song_folder::{RefusedFile, SongFolder};

#[derive(Clone)]
pub(super) struct Writer {
    /// `None` in a dry run.
    pub(super) batches: Option<Arc<Batches>>,
    /// The charts stored by this run.
    pub(super) stored_this_run: StoredHashes,
    /// Charts that are erased.
    pub(super) erased: Arc<HashSet<NoteHash>>,
    /// Cancels retries of store calls.
    pub(super) stop: CancellationToken,
}

/// What to report of an input, either after storing it or, if it is unchanged, from its [`RecordedOutcome`].
/// The [`ChartsetOutcome`] of each chartset is in its line.
#[derive(Default)]
pub(super) struct InputReport {
    pub(super) chartsets: Vec<ChartsetLine>,
    /// Its files and charts that are not indexed.
    pub(super) refused: Vec<RefusedFile>,
    /// The number of song folders in which nothing could be indexed.
    pub(super) refused_chartsets: u64,
    /// The fingerprint to record. `None` if the next run has to decode the input again.
    pub(super) fingerprint: Option<InputFingerprint>,
}

impl Writer {
    /// Stores the song folders of an input. A chartset that PostgreSQL rejects is reported as failed.
    ///
    /// # Errors
    /// The store failed for reasons other than the chartset.
    pub(super) async fn store(
        &self,
        folders: Vec<SongFolder>,
        refused_chartsets: u64,
        fingerprint: Option<InputFingerprint>,
    ) -> Result<InputReport, StoreError> {
        let mut outcome = RecordedOutcome { refused_chartsets, ..RecordedOutcome::default() };
        let mut report = InputReport::default();
        let mut complete = true;
        let mut drafts = Vec::new();
        for folder in folders {
            complete &= !folder.is_unreadable;
            outcome.refused.extend(folder.refused);
            drafts.extend(folder.draft.map(Arc::new));
        }
        // Several at once, so that they share transactions.
        let lines = stream::iter(drafts.iter().cloned().map(|draft| self.store_draft(draft)));
        let lines: Vec<_> = lines.buffered(2 * BATCH).try_collect().await?;
        for (draft, line) in drafts.iter().zip(lines) {
            complete &= line.outcome != ChartsetOutcome::Failed;
            report.chartsets.push(line);
            outcome.chartsets.push(StoredChartset::from_draft(draft, &self.erased));
        }
        if let Some(mut fingerprint) = fingerprint.filter(|_| complete)
            && let Ok(recorded) = serde_json::to_string(&outcome)
        {
            fingerprint.outcome = recorded;
            report.fingerprint = Some(fingerprint);
        }
        report.refused = outcome.refused;
        report.refused_chartsets = refused_chartsets;
        // Unsigned numbers would be exported as text.
        Span::current()
            .record("chart_index.ingest.chartsets", report.chartsets.len().cast_signed())
            .record("chart_index.ingest.refusals", report.refused.len().cast_signed());
        Ok(report)
    }

    async fn store_draft(&self, draft: Arc<ChartsetDraft>) -> Result<ChartsetLine, StoreError> {
        let line = ChartsetLine::new(ChartsetOutcome::Read, draft.path.clone(), draft.id, draft.charts.len());
        let Some(batches) = &self.batches else { return Ok(line) };
        // The spans of the transaction are in the trace of one of its chartsets.
        let span = child_span(|| tracing::debug_span!("store"));
        let put = match batches.put(&draft, &self.stop).instrument(span).await {
            Err(error) if error.is_rejected() => {
                let reason = Some(Causes(&error).to_string());
                return Ok(ChartsetLine { outcome: ChartsetOutcome::Failed, reason, ..line });
            }
            put => put?,
        };
        self.stored_this_run.extend(&draft);
        Ok(ChartsetLine { outcome: put.effect.into(), removed: put.removed, ..line })
    }
}

impl From<PutEffect> for ChartsetOutcome {
    fn from(effect: PutEffect) -> Self {
        match effect {
            PutEffect::Added => Self::Added,
            PutEffect::Unchanged => Self::Unchanged,
            PutEffect::Updated => Self::Updated,
        }
    }
}
