//! A pass: applies the changes after the checkpoint of an index, and advances the checkpoint.

use std::collections::HashSet;

use anyhow::Result;
use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, RecordedCheckpoint};
use chart_index_search::Target;
use chart_index_store::Changes;

use crate::search::node::{Batches, Node, Written};

/// Maximum number of outbox rows in a pass, except for larger transactions. A rebuild waits for at most one
/// pass.
const ROWS_PER_PASS: u32 = 4_000;
const BATCH_SIZE: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) written: Written,
    /// The number of chartsets whose documents the node rejected.
    pub(crate) quarantined: u64,
    /// The checkpoint of the index after the pass.
    pub(crate) recorded: RecordedCheckpoint,
    /// Whether there are no further changes that can be applied now.
    pub(crate) is_last: bool,
    /// The position after all changes that were committed when the pass started.
    pub(crate) committed: Checkpoint,
    /// Whether transactions were running that may still commit changes.
    pub(crate) has_running_transactions: bool,
}

/// Applies the changes after the checkpoint of an index. No other process may write to the index.
///
/// # Errors
/// The checkpoint is then unchanged, and the pass can be run again.
pub(crate) async fn pass(node: &Node, target: Target, from: RecordedCheckpoint) -> Result<Pass> {
    let changes = node.store.changes(from, ROWS_PER_PASS).await?;
    let (written, quarantined) = apply(node, target, &changes).await?;
    // Writes nothing if there are no changes, unless the history of the checkpoint was not recorded yet.
    if changes.next != from {
        node.locks.check().await?;
        node.writer.set_checkpoint(target, changes.next).await?;
    }
    let Changes { next, is_last, committed, has_running_transactions, .. } = changes;
    Ok(Pass { written, quarantined, recorded: next, is_last, committed, has_running_transactions })
}

/// Writes the changed chartsets in their current state, which is at least as new as the changes. Applying the
/// same changes again is harmless. Returns what was written, and the number of chartsets whose documents the
/// node rejected.
async fn apply(node: &Node, target: Target, changes: &Changes) -> Result<(Written, u64)> {
    if changes.chartsets.is_empty() {
        return Ok((Written::default(), 0));
    }
    let quarantined = node.writer.read_quarantined(target).await?;
    let mut batches = Batches::new(node, target);
    for ids in changes.chartsets.chunks(BATCH_SIZE) {
        let put = node.store.indexed_chartsets(ids).await?;
        let shown: HashSet<ChartsetId> = put.iter().map(|set| set.chartset.id).collect();
        let delete = ids.iter().copied().filter(|id| !shown.contains(id)).collect();
        batches.send(put, delete).await?;
    }
    let (written, rejected) = batches.finish().await?;
    node.locks.check().await?;
    node.writer.record_quarantine(target, &quarantined, &changes.chartsets, &rejected).await?;
    Ok((written, rejected.len() as u64))
}

/// Runs passes until there are no further changes. Returns the checkpoint of the index.
pub(crate) async fn catch_up(
    node: &Node,
    target: Target,
    from: RecordedCheckpoint,
) -> Result<RecordedCheckpoint> {
    let mut recorded = from;
    loop {
        let pass = pass(node, target, recorded).await?;
        recorded = pass.recorded;
        if pass.is_last {
            return Ok(recorded);
        }
    }
}
