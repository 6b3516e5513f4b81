//! `chart-indexer backfill`: computes what an older version did not store, from the stored ROX files.
//!
//! Charts are read in the order of their hashes, in pages, and stored in batches, each in one transaction. A
//! run that is interrupted has stored its complete batches; the next one passes over their charts.
//!
//! Lists filter by the ratings and patterns of one version. They use the earlier one until the run has ended.

use crate::stdout;
use std::collections::HashMap;

use anyhow::{Result, bail};
use chart_index_chartfile::inspect_rox;
use chart_index_domain::{ChartDraft, NoteHash};
use chart_index_store::{BackfillState, Store};
use indicatif::ProgressBar;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::progress;
use crate::report::plural;

/// Number of charts whose states are read in one query.
const PAGE: u32 = 2_000;
/// The maximum number of charts of a batch.
const BATCH_CHARTS: usize = 256;
/// The maximum size of the ROX files of a batch, except for a single larger file. A decoded chart is up to
/// fifty times as large as its file.
const BATCH_ROX_BYTES: u64 = 4 * 1024 * 1024;

/// Computes what `ingest` computes from notes, for charts that lack some of it or for all charts, and stores
/// what is missing or differs.
///
/// # Errors
/// A ROX file is missing or wrong, after all others are done; or the store failed.
pub(crate) async fn backfill(store: &Store, full: bool) -> Result<()> {
    let charts = store.stored_chart_count().await?;
    let mut run = Backfill {
        store,
        stop: CancellationToken::new(),
        progress: progress::items(charts),
        written: 0,
        present: 0,
        failed: 0,
    };
    let result = run.run(full).await;
    run.progress.finish_and_clear();
    result?;
    let Backfill { written, present, failed, .. } = run;
    let written = plural(written, "chart");
    stdout::print(format_args!("{written} written, {present} up to date, {failed} failed"))?;
    if failed > 0 {
        bail!("{} failed: `chart-indexer verify` checks the ROX files", plural(failed, "chart"));
    }
    Ok(())
}

struct Backfill<'a> {
    store: &'a Store,
    /// Never cancelled: an interrupted run is dropped.
    stop: CancellationToken,
    progress: ProgressBar,
    written: u64,
    present: u64,
    failed: u64,
}

impl Backfill<'_> {
    async fn run(&mut self, full: bool) -> Result<()> {
        let mut after = None;
        loop {
            let page = retry_store_call(&self.stop, || self.store.backfill_states_after(after, PAGE)).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.hash);
            let (present, missing): (Vec<_>, Vec<_>) =
                page.into_iter().partition(|state| state.is_complete && !full);
            self.present += present.len() as u64;
            self.progress.inc(present.len() as u64);
            for batch in batches(&missing) {
                self.process(batch).await?;
            }
        }
        Ok(retry_store_call(&self.stop, || self.store.list_computed()).await?)
    }

    /// Computes and stores what the charts of a batch miss.
    async fn process(&mut self, batch: &[BackfillState]) -> Result<()> {
        let hashes: Vec<NoteHash> = batch.iter().map(|state| state.hash).collect();
        let rox_files = retry_store_call(&self.stop, || self.store.rox_files(&hashes)).await?;
        let mut results = compute(rox_files).await?;
        let mut computed = Vec::with_capacity(batch.len());
        for hash in hashes {
            match results.remove(&hash).unwrap_or_else(|| Err("its ROX file is missing".to_owned())) {
                Ok(chart) => computed.push(chart),
                Err(reason) => {
                    self.failed += 1;
                    self.progress.suspend(|| stdout::print(format_args!("chart {hash}: {reason}")))?;
                }
            }
        }
        let changed = retry_store_call(&self.stop, || self.store.put_computed(&computed)).await?;
        self.written += changed.len() as u64;
        self.present += (computed.len() - changed.len()) as u64;
        self.progress.inc(batch.len() as u64);
        Ok(())
    }
}

/// Divides charts into batches.
fn batches(charts: &[BackfillState]) -> impl Iterator<Item = &[BackfillState]> {
    let mut rest = charts;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let fits = |state: &&BackfillState| {
            bytes = bytes.saturating_add(state.rox_bytes);
            bytes <= BATCH_ROX_BYTES
        };
        let count = rest.iter().take(BATCH_CHARTS).take_while(fits).count().max(1);
        let (batch, following) = rest.split_at_checked(count)?;
        rest = following;
        Some(batch)
    })
}

/// The error is the reason why nothing is computed.
type Computed = Result<ChartDraft, String>;

/// Decodes ROX files and computes what follows from them, on all cores.
async fn compute(rox_files: Vec<(NoteHash, Vec<u8>)>) -> Result<HashMap<NoteHash, Computed>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts: Vec<Vec<(NoteHash, Vec<u8>)>> = (0..cores).map(|_| Vec::new()).collect();
    for (index, file) in rox_files.into_iter().enumerate() {
        parts[index % cores].push(file);
    }
    let mut tasks = JoinSet::new();
    for part in parts {
        tasks.spawn_blocking(move || {
            part.into_iter().map(|(hash, rox)| (hash, computed(hash, rox))).collect::<Vec<_>>()
        });
    }
    let mut results = HashMap::new();
    while let Some(computed) = tasks.join_next().await {
        results.extend(computed?);
    }
    Ok(results)
}

fn computed(hash: NoteHash, rox: Vec<u8>) -> Computed {
    let content = inspect_rox(&rox).map_err(|refusal| format!("invalid ROX file: {refusal}"))?;
    if content.hash != hash {
        return Err(format!("its ROX file has the note hash {}", content.hash));
    }
    Ok(content.into_draft(rox))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_count_and_bytes() {
        let state =
            |rox_bytes| BackfillState { hash: NoteHash::from_bytes([0; 32]), rox_bytes, is_complete: false };
        let sizes = |charts: &[BackfillState]| batches(charts).map(<[_]>::len).collect::<Vec<_>>();
        assert!(sizes(&[]).is_empty());
        assert_eq!(sizes(&vec![state(10); 600]), [256, 256, 88]);
        let half = BATCH_ROX_BYTES / 2;
        assert_eq!(sizes(&[half, half, 1, 2 * half + 1, 1].map(state)), [2, 1, 1, 1]);
    }
}
