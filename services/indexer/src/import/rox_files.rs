//! The first half of an import: charts with their ROX files.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use chart_index_chartfile::inspect_rox;
use chart_index_domain::{ChartDraft, ChartMetadata, ExportFile, NoteHash};
use chart_index_store::Precedence;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};

use super::Import;
use super::export_files::Export;
use super::rox_archive::read_rox_files;
use crate::backoff::retry_store_call;
use crate::clock::now_ms;

/// The maximum number of charts of a batch.
const BATCH_CHARTS: usize = 256;
/// The size of the ROX files from which on a batch is complete. Its previews are about as large, and a decoded
/// chart up to fifty times as large as its file.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

type RoxFiles = Vec<(NoteHash, Vec<u8>)>;

impl Import<'_> {
    /// Stores the charts that are not stored yet.
    pub(super) async fn import_rox_files(&mut self, export: &Export) -> Result<()> {
        // One batch is read while another one is stored.
        let (sender, mut batches) = mpsc::channel(1);
        let export = export.clone();
        let reader = spawn_blocking(move || read_batches(&export, &sender));
        while let Some(batch) = batches.recv().await {
            let count = batch.len() as u64;
            self.import_batch(batch).await?;
            self.progress.advance_by(count);
        }
        reader.await?
    }

    async fn import_batch(&mut self, mut batch: RoxFiles) -> Result<()> {
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
        let (replacements, charts): (Vec<_>, Vec<_>) =
            decode(batch).await?.into_iter().partition(|chart| others.contains(&chart.hash));
        for chart in &replacements {
            retry_store_call(&self.stop, || self.store.replace_rox(chart, None)).await?;
        }
        if self.precedence == Precedence::Stored {
            self.other_files.extend(others);
        }
        if !charts.is_empty() {
            retry_store_call(&self.stop, || self.store.put_charts(&charts, now_ms())).await?;
        }
        Ok(())
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

/// Computes on all cores what is stored of the charts.
async fn decode(rox_files: RoxFiles) -> Result<Vec<ChartDraft>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts: Vec<RoxFiles> = (0..cores).map(|_| Vec::new()).collect();
    for (index, file) in rox_files.into_iter().enumerate() {
        parts[index % cores].push(file);
    }
    let mut tasks = JoinSet::new();
    for part in parts {
        let drafts = move || part.into_iter().map(|(hash, rox)| draft(hash, rox)).collect::<Result<Vec<_>>>();
        tasks.spawn_blocking(drafts);
    }
    let mut charts = Vec::new();
    while let Some(drafts) = tasks.join_next().await {
        charts.append(&mut drafts??);
    }
    Ok(charts)
}

/// What is stored of a chart with this ROX file.
///
/// # Errors
/// It is no ROX file, or has other notes.
pub(crate) fn draft(hash: NoteHash, rox: Vec<u8>) -> Result<ChartDraft> {
    let content = inspect_rox(&rox).with_context(|| format!("the ROX file of chart {hash} is invalid"))?;
    let actual = content.hash;
    ensure!(actual == hash, "the ROX file of chart {hash} has the notes of chart {actual}");
    Ok(ChartDraft {
        hash,
        numbers: content.numbers,
        rox: Some(rox),
        preview: Some(content.preview),
        metadata: ChartMetadata::default(),
        declared_source: None,
        alpha_beatmap_id: None,
    })
}
