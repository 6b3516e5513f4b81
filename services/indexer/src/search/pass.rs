//! A pass: applies the changes after the position of an index, and advances the position.

use std::collections::HashSet;

use anyhow::{Error, Result};
use chart_index_domain::{ChartsetId, Position};
use chart_index_search::{IndexBatch, Target};
use chart_index_store::{ChangesError, ChartsetChanges, Store};

use crate::search::node::{Node, Written};

/// Maximum number of changes in a pass. A rebuild waits for at most one pass.
pub(crate) const CHANGES_PER_PASS: u32 = 4_000;

/// What a pass did.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) written: Written,
    /// The number of chartsets whose documents the node rejected.
    pub(crate) quarantined: u64,
    /// The position of the index after the pass.
    pub(crate) position: Position,
    /// Whether there were no further changes.
    pub(crate) is_last: bool,
}

/// Reads the changes after the position of an index.
///
/// # Errors
/// Among others, the index has to be rebuilt.
pub(crate) async fn changes_after(store: &Store, from: Position, limit: u32) -> Result<ChartsetChanges> {
    let changes = store.chartset_changes(from, limit).await;
    changes.map_err(|error| match error {
        ChangesError::RebuildNeeded { .. } => {
            Error::new(error).context("the search index needs a rebuild: run `chart-indexer rebuild`")
        }
        ChangesError::Read(error) => error.into(),
    })
}

/// Applies the changes after the position of an index. No other process may write to the index.
///
/// # Errors
/// The position is then unchanged, and the changes can be applied again.
pub(crate) async fn apply(
    node: &Node,
    target: Target,
    from: Position,
    changes: &ChartsetChanges,
) -> Result<Pass> {
    let (written, quarantined) = write_documents(node, target, changes).await?;
    let ChartsetChanges { next: position, is_last, .. } = *changes;
    if position != from {
        node.locks.check().await?;
        node.writer.advance_position(target, from, position).await?;
    }
    Ok(Pass { written, quarantined, position, is_last })
}

/// Writes the changed chartsets in the state of the feed. Writing the same ones again is harmless. Returns what
/// was written, and the number of chartsets whose documents the node rejected.
async fn write_documents(node: &Node, target: Target, changes: &ChartsetChanges) -> Result<(Written, u64)> {
    let ChartsetChanges { changed, shown: put, .. } = changes;
    if changed.is_empty() {
        return Ok((Written::default(), 0));
    }
    let quarantined = node.writer.read_quarantined(target).await?;
    let shown: HashSet<ChartsetId> = put.iter().map(|set| set.chartset.id).collect();
    let delete: Vec<ChartsetId> = changed.iter().copied().filter(|id| !shown.contains(id)).collect();
    node.locks.check().await?;
    let rejected = node.writer.apply(target, &IndexBatch { put, delete: &delete }).await?.rejected;
    node.warn_rejected(&rejected);
    node.locks.check().await?;
    node.writer.record_quarantine(target, &quarantined, changed, &rejected).await?;
    let written = Written { put: (put.len() - rejected.len()) as u64, deleted: delete.len() as u64 };
    Ok((written, rejected.len() as u64))
}

/// Runs passes until the index has everything that is committed when it is called. Returns its position.
pub(crate) async fn catch_up(node: &Node, target: Target, from: Position) -> Result<Position> {
    let goal = node.store.feed_position().await?;
    let mut position = from;
    loop {
        let changes = changes_after(&node.store, position, CHANGES_PER_PASS).await?;
        position = apply(node, target, position, &changes).await?.position;
        if position.sequence >= goal.sequence {
            return Ok(position);
        }
    }
}
