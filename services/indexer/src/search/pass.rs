//! A pass: the changes that follow a checkpoint are applied to an index, and its checkpoint moves on.

use std::collections::HashSet;

use anyhow::Result;
use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, RecordedCheckpoint};
use chart_index_search::Target;
use chart_index_store::Changes;

use crate::search::node::{Batches, Node, Written};

/// Rows of the outbox in one pass, but for transactions that are larger. A rebuild waits for its turn as long as
/// one pass takes.
const ROWS_OF_A_PASS: u32 = 4_000;
/// Sets in one batch.
const SETS_OF_A_BATCH: usize = 1_000;

/// What a pass did.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) written: Written,
    /// The checkpoint of the index after it.
    pub(crate) recorded: RecordedCheckpoint,
    /// Whether nothing follows that could be taken.
    pub(crate) is_last: bool,
    /// The position after every change that was committed when the pass began.
    pub(crate) committed: Checkpoint,
    /// Whether transactions were under way.
    pub(crate) has_running_transactions: bool,
}

/// Applies the changes that follow the checkpoint of an index, which only this process may be writing to.
///
/// # Errors
/// The checkpoint is then where it was, and the pass may be run again.
pub(crate) async fn pass(node: &Node, target: Target, from: RecordedCheckpoint) -> Result<Pass> {
    let changes = node.store.changes(from, ROWS_OF_A_PASS).await?;
    let written = apply(node, target, &changes).await?;
    // Without changes it is what it was, unless its history was not recorded: nothing is written while nothing happens.
    if changes.next != from {
        node.locks.check().await?;
        node.writer.set_checkpoint(target, changes.next).await?;
    }
    let Changes { next, is_last, committed, has_running_transactions, .. } = changes;
    Ok(Pass { written, recorded: next, is_last, committed, has_running_transactions })
}

/// Writes the sets as they are now: that is at least as new as the changes, and the same again when they come once
/// more.
async fn apply(node: &Node, target: Target, changes: &Changes) -> Result<Written> {
    if changes.chartsets.is_empty() {
        return Ok(Written::default());
    }
    let quarantined = node.writer.quarantined(target).await?;
    let mut batches = Batches::new(node, target);
    for ids in changes.chartsets.chunks(SETS_OF_A_BATCH) {
        let put = node.store.indexed_chartsets(ids).await?;
        let shown: HashSet<ChartsetId> = put.iter().map(|set| set.chartset.id).collect();
        let delete = ids.iter().copied().filter(|id| !shown.contains(id)).collect();
        batches.send(put, delete).await?;
    }
    let (written, refused) = batches.finish().await?;
    node.locks.check().await?;
    node.writer.record_quarantine(target, &quarantined, &changes.chartsets, &refused).await?;
    Ok(written)
}

/// Applies changes until none follow, and gives the checkpoint of the index after that.
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
