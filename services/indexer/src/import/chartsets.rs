//! The second half of an import: the chartsets.

use std::collections::HashSet;

use anyhow::{Context, Result, anyhow, bail};
use chart_index_domain::{ChartsetId, Entity, ExportFile, NoteHash};
use chart_index_store::{ImportOutcome, Precedence};
use futures_util::TryStreamExt;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::changes::{Removed, read_changes};
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
/// The number of chartsets of an increment that are stored together.
const BATCH_CHARTSETS: usize = 128;
/// The number of entries that are deleted in a transaction, which other writers wait for.
pub(crate) const DELETED_TOGETHER: usize = 200;

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
            self.progress.advance_by(count);
        }
        drop(imported);
        reader.await?
    }
}

impl Import<'_> {
    /// Applies the changes of an increment: stores the chartsets, and deletes what was removed.
    pub(super) async fn import_changes(&mut self, export: &Export) -> Result<()> {
        let (sender, mut pages) = mpsc::channel(1);
        let export = export.clone();
        let reader = spawn_blocking(move || {
            let (file, manifest) = (export.open(ExportFile::Changes)?, export.manifest());
            read_changes(file, manifest, manifest.since.unwrap_or_default(), |page| {
                sender.blocking_send(page).is_ok()
            })
        });
        while let Some(page) = pages.recv().await {
            if let Some((name, reason)) = page.refused.first() {
                bail!("{name}: {reason}");
            }
            let mut chartsets = page.chartsets.into_iter().map(|chartset| chartset.checked).peekable();
            while chartsets.peek().is_some() {
                let batch: Vec<_> = chartsets.by_ref().take(BATCH_CHARTSETS).collect();
                let (count, outcomes) = self.target.import_chartsets(batch, &self.other_files).await?;
                self.counts.removed += count - outcomes.len() as u64;
                for outcome in outcomes {
                    self.counts.add(outcome);
                }
                self.progress.advance_by(count);
            }
            self.target.delete(&page.removed).await?;
            self.counts.deleted += page.removed.len() as u64;
        }
        reader.await?
    }
}

impl Target<'_> {
    /// Deletes chartsets, and the charts that an operator has removed there. Other charts are unknown there
    /// since no chartset contains them, and here then as well, unless one that is not in the increment does.
    async fn delete(&self, removed: &[Removed]) -> Result<()> {
        for by_operator in [false, true] {
            let entities = removed.iter().filter(|removed| removed.by_operator == by_operator);
            let entities = entities.map(|removed| removed.entity);
            let entities: Vec<Entity> =
                entities.filter(|entity| by_operator || matches!(entity, Entity::Chartset(_))).collect();
            for batch in entities.chunks(DELETED_TOGETHER) {
                retry_store_call(&self.stop, || self.store.delete(batch, by_operator)).await?;
            }
        }
        Ok(())
    }

    /// Returns the number of chartsets, and the outcomes of those that were not erased.
    async fn import_chartsets(
        &self,
        mut batch: Vec<CheckedChartset>,
        other_files: &HashSet<NoteHash>,
    ) -> Result<(u64, Vec<ImportOutcome>)> {
        let count = batch.len() as u64;
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
        let stored = retry_store_call(&self.stop, || self.store.stored_numbers(&hashes)).await?;
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
