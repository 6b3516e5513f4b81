//! The second half of an import: the chartsets.

use std::collections::HashSet;

use anyhow::{Context, Result, anyhow};
use chart_index_domain::{ChartsetId, ExportFile, NoteHash};
use chart_index_store::{ImportOutcome, Precedence};
use futures_util::TryStreamExt;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::chartset_lines::{CheckedChartset, read_chartsets};
use super::compare::check_chart;
use super::export_files::Export;
use super::{Import, Target, in_flight};
use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// The number of charts from which on a batch is complete.
const BATCH_CHARTS: usize = 500;
/// So is the size of its lines in bytes. Two more batches are in memory than are in flight: one that is read,
/// and one that waits.
const BATCH_BYTES: usize = 1024 * 1024;

impl Import<'_> {
    /// Stores the chartsets that are not stored yet, or were changed before. Those that were erased are counted
    /// as removed.
    pub(super) async fn import_chartsets(&mut self, export: &Export) -> Result<()> {
        let (sender, batches) = mpsc::channel(1);
        let export = export.clone();
        let reader = spawn_blocking(move || read_batches(&export, &sender));
        let mut imported = in_flight(batches, |batch| self.target.import_chartsets(batch, &self.other_files));
        while let Some((count, outcomes)) = imported.try_next().await? {
            self.counts.removed += count - outcomes.len() as u64;
            for outcome in outcomes {
                self.counts.add(outcome);
            }
            self.progress.inc(count);
        }
        drop(imported);
        reader.await?
    }
}

impl Target<'_> {
    /// Returns the number of chartsets, and the outcomes of those that were not erased.
    async fn import_chartsets(
        &self,
        mut batch: Vec<CheckedChartset>,
        other_files: &HashSet<NoteHash>,
    ) -> Result<(u64, Vec<ImportOutcome>)> {
        let count = batch.len() as u64;
        let removals = self.removals.read().await;
        batch.retain_mut(|checked| checked.leave_out(&removals, self.sequence));
        let ids: Vec<ChartsetId> = batch.iter().map(|checked| checked.chartset.draft.id).collect();
        batch.retain(|checked| !self.erased.chartsets.contains(&checked.chartset.draft.id));
        self.check_charts(&batch, other_files).await?;
        let chartsets: Vec<_> = batch.into_iter().map(|checked| checked.chartset).collect();
        let import = || self.store.import_chartsets(&chartsets, self.precedence, now_ms());
        let outcomes = retry_store_call(&self.stop, import).await?;
        if self.precedence == Precedence::Imported {
            retry_store_call(&self.stop, || self.store.confirm_chartsets(&ids)).await?;
        }
        Ok((count, outcomes))
    }

    /// Compares the charts with the stored ones, whose numbers were computed from their ROX files.
    async fn check_charts(&self, batch: &[CheckedChartset], other_files: &HashSet<NoteHash>) -> Result<()> {
        let charts =
            || batch.iter().flat_map(|checked| checked.chartset.draft.charts.iter().zip(&checked.rox_bytes));
        let hashes: Vec<NoteHash> = charts().map(|(chart, _)| chart.hash).collect();
        let stored = retry_store_call(&self.stop, || self.store.stored_values(&hashes)).await?;
        for (chart, rox_bytes) in charts() {
            let hash = chart.hash;
            if self.erased.charts.contains(&hash) {
                continue;
            }
            let stored = stored.get(&hash);
            let stored = stored.ok_or_else(|| anyhow!("the export has no ROX file of chart {hash}"))?;
            if !other_files.contains(&hash) {
                check_chart(&chart.numbers, *rox_bytes, stored)
                    .with_context(|| format!("chart {hash} does not match its ROX file"))?;
            }
        }
        Ok(())
    }
}

/// Sends the chartsets in batches, until the receiver is dropped.
fn read_batches(export: &Export, batches: &mpsc::Sender<Vec<CheckedChartset>>) -> Result<()> {
    let (mut batch, mut charts, mut bytes) = (Vec::new(), 0, 0);
    let file = export.open(ExportFile::Chartsets)?;
    read_chartsets(file, export.manifest().chartsets, now_ms(), |checked, line_bytes| {
        charts += checked.rox_bytes.len();
        bytes += line_bytes;
        batch.push(checked);
        if charts < BATCH_CHARTS && bytes < BATCH_BYTES {
            return true;
        }
        (charts, bytes) = (0, 0);
        batches.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    // Err if the import has failed, which reports its own error.
    let _ = batches.blocking_send(batch);
    Ok(())
}
