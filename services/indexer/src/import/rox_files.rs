//! The first half of an import: charts with their ROX files.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use chart_index_chartfile::inspect_rox;
use chart_index_domain::{ChartDraft, ExportFile, NoteHash};
use chart_index_store::Precedence;
use futures_util::TryStreamExt;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::export_files::Export;
use super::rox_archive::read_rox_files;
use super::{Import, Target, in_flight};
use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// The maximum number of charts of a batch.
const BATCH_CHARTS: usize = 128;
/// The size of the ROX files from which on a batch is complete. A decoded chart is up to fifty times as
/// large as its file.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

type RoxFiles = Vec<(NoteHash, Vec<u8>)>;

impl Import<'_> {
    /// Stores the charts that are not stored yet.
    pub(super) async fn import_rox_files(&mut self, export: &Export) -> Result<()> {
        let (sender, batches) = mpsc::channel(1);
        let export = export.clone();
        let reader = spawn_blocking(move || read_batches(&export, &sender));
        let mut imported = in_flight(batches, |batch| self.target.import_rox_files(batch));
        while let Some((count, others)) = imported.try_next().await? {
            self.other_files.extend(others);
            self.progress.inc(count);
        }
        drop(imported);
        reader.await?
    }
}

impl Target<'_> {
    /// Returns the number of ROX files, and the charts that are stored with another one, which stays.
    async fn import_rox_files(&self, mut batch: RoxFiles) -> Result<(u64, HashSet<NoteHash>)> {
        let count = batch.len() as u64;
        batch.retain(|(hash, _)| !self.erased.charts.contains(hash));
        let hashes: Vec<NoteHash> = batch.iter().map(|(hash, _)| *hash).collect();
        let mut stored = retry_store_call(&self.stop, || self.store.rox_files(&hashes)).await?;
        stored.sort_unstable_by_key(|(hash, _)| *hash);
        let mut others = HashSet::new();
        batch.retain(|(hash, bytes)| {
            let Ok(index) = stored.binary_search_by_key(hash, |(hash, _)| *hash) else { return true };
            let is_other = stored[index].1 != *bytes;
            if is_other {
                others.insert(*hash);
            }
            is_other && self.precedence == Precedence::Imported
        });
        if !batch.is_empty() {
            let drafts =
                move || batch.into_iter().map(|(hash, rox)| draft(hash, rox)).collect::<Result<Vec<_>>>();
            let drafts = spawn_blocking(drafts).await??;
            let (replacements, charts): (Vec<_>, Vec<_>) =
                drafts.into_iter().partition(|chart| others.contains(&chart.hash));
            for chart in &replacements {
                retry_store_call(&self.stop, || self.store.replace_rox(chart, None)).await?;
                others.remove(&chart.hash);
            }
            retry_store_call(&self.stop, || self.store.put_charts(&charts, now_ms())).await?;
        }
        Ok((count, others))
    }
}

/// Sends the ROX files in batches, until the receiver is dropped.
fn read_batches(export: &Export, batches: &mpsc::Sender<RoxFiles>) -> Result<()> {
    let (mut batch, mut batch_bytes) = (Vec::new(), 0);
    let archive = export.open(ExportFile::Rox)?;
    read_rox_files(archive, export.manifest().charts, |hash, bytes| {
        batch_bytes += bytes.len();
        batch.push((hash, bytes));
        if batch.len() < BATCH_CHARTS && batch_bytes < BATCH_BYTES {
            return true;
        }
        batch_bytes = 0;
        batches.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    // Err if the import has failed, which reports its own error.
    let _ = batches.blocking_send(batch);
    Ok(())
}

/// What is stored of a chart with this ROX file.
///
/// # Errors
/// It is no ROX file, or has other notes.
pub(crate) fn draft(hash: NoteHash, rox: Vec<u8>) -> Result<ChartDraft> {
    let content = inspect_rox(&rox).with_context(|| format!("the ROX file of chart {hash} is invalid"))?;
    let actual = content.hash;
    ensure!(actual == hash, "the ROX file of chart {hash} has the notes of chart {actual}");
    Ok(content.into_draft(rox))
}
