//! The second half of an import: the chartsets.

use anyhow::{Context, Result, anyhow};
use chart_index_domain::{ChartsetId, ExportFile, NoteHash};
use chart_index_store::{ImportedChartset, Precedence};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::Import;
use super::chartset_lines::{CheckedChartset, read_chartsets};
use super::compare::check_chart;
use super::export_files::Export;
use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// The number of charts from which on a batch is complete.
const BATCH_CHARTS: usize = 1_000;
/// So is the size of its lines in bytes. Three batches are in memory at most: one that is read, one that waits,
/// and one that is stored.
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// The number of chartsets that are stored at once, as in an ingest.
const WRITERS: usize = 4;

impl Import<'_> {
    /// Stores the chartsets that are not stored yet, or were changed before. Those that were erased are counted
    /// as removed.
    pub(super) async fn import_chartsets(&mut self, export: &Export) -> Result<()> {
        // One batch is read while another one is stored.
        let (sender, mut batches) = mpsc::channel(1);
        let export = export.clone();
        let reader = spawn_blocking(move || read_batches(&export, &sender));
        while let Some(mut batch) = batches.recv().await {
            let count = batch.len() as u64;
            let ids: Vec<ChartsetId> = batch.iter().map(|checked| checked.chartset.draft.id).collect();
            batch.retain(|checked| !self.erased.chartsets.contains(&checked.chartset.draft.id));
            self.counts.removed += count - batch.len() as u64;
            self.check_charts(&batch).await?;
            self.store_batch(batch).await?;
            if self.precedence == Precedence::Imported {
                retry_store_call(&self.stop, || self.store.confirm_chartsets(&ids)).await?;
            }
            self.progress.advance_by(count);
        }
        reader.await?
    }

    /// Compares the charts with the stored ones, whose numbers were computed from their ROX files.
    async fn check_charts(&self, batch: &[CheckedChartset]) -> Result<()> {
        let charts =
            || batch.iter().flat_map(|checked| checked.chartset.draft.charts.iter().zip(&checked.rox_bytes));
        let hashes: Vec<NoteHash> = charts().map(|(chart, _)| chart.hash).collect();
        let stored = retry_store_call(&self.stop, || self.store.stored_numbers(&hashes)).await?;
        for (chart, rox_bytes) in charts() {
            let hash = chart.hash;
            if self.erased.charts.contains(&hash) {
                continue;
            }
            let stored = stored.get(&hash);
            let stored = stored.ok_or_else(|| anyhow!("the export has no ROX file of chart {hash}"))?;
            if !self.other_files.contains(&hash) {
                check_chart(&chart.numbers, *rox_bytes, stored)
                    .with_context(|| format!("chart {hash} does not match its ROX file"))?;
            }
        }
        Ok(())
    }

    async fn store_batch(&mut self, batch: Vec<CheckedChartset>) -> Result<()> {
        let chartsets = batch.into_iter().map(|checked| checked.chartset);
        let this = &*self;
        let put = async |chartset: ImportedChartset| {
            retry_store_call(&this.stop, || this.store.import_chartset(&chartset, this.precedence, now_ms()))
                .await
        };
        let puts = stream::iter(chartsets).map(put).buffer_unordered(WRITERS);
        let outcomes: Vec<_> = puts.try_collect().await?;
        for outcome in outcomes {
            self.counts.add(outcome);
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
