//! `chart-indexer rebuild`: fills a new index, checks it, and swaps it with the live one atomically.

use std::collections::HashSet;

use anyhow::{Result, bail, ensure};
use chart_index_domain::{ChartsetId, Position};
use chart_index_search::{IndexWriter, Target};
use chart_index_store::{ProcessRole, Store};
use chart_index_telemetry::print;
use indicatif::ProgressBar;
use tracing::Level;

use crate::progress;
use crate::report::plural;
use crate::search::node::{Batches, Node};
use crate::search::pass::catch_up;

const BATCH_SIZE: u32 = 4_000;
/// Number of samples, spread evenly over the ids, by which the new index is compared with PostgreSQL.
const SAMPLES: u64 = 20;
const SAMPLE_SIZE: u32 = 50;

/// Rebuilds the indexes of all nodes, one after the other. Searches use the live index until the swap.
///
/// # Errors
/// A node failed. Its live index is unchanged, and the other nodes were rebuilt.
pub(crate) async fn rebuild(store: &Store, writers: &[IndexWriter]) -> Result<()> {
    let mut failed = 0;
    for writer in writers {
        if let Err(error) = rebuild_one(store, writer).await {
            failed += 1;
            print(Level::ERROR, format_args!("{}: {error:#}", writer.node_url()));
        }
    }
    ensure!(failed == 0, "rebuild failed for {failed} of {} nodes", writers.len());
    Ok(())
}

async fn rebuild_one(store: &Store, writer: &IndexWriter) -> Result<()> {
    let progress = progress::items(store.counts().await?.chartsets);
    Box::pin(rebuild_node(&Node::connect(store, writer).await?, &progress)).await
}

/// Rebuilds the index of a node on which this process does not hold [`ProcessRole::Write`].
///
/// If it is interrupted, the live index is either the complete old one or the complete new one. After an error
/// the caller must drop the locks.
pub(crate) async fn rebuild_node(node: &Node, progress: &ProgressBar) -> Result<()> {
    ensure!(
        node.locks.try_acquire(ProcessRole::Rebuild).await?,
        "another process is already rebuilding the index of this node"
    );
    let start = node.locks.while_held(fill(node, progress)).await??;
    progress.finish_and_clear();
    // First most changes made in the meantime, while `sync` still follows the live index; then the rest under
    // its lock.
    let position = node.locks.while_held(catch_up(node, Target::Rebuild, start)).await??;
    let position = node.with_write_lock(swap(node, position)).await?;
    node.locks.release(ProcessRole::Rebuild).await?;
    let sets = node.writer.count(Target::Live).await?;
    node.print(format_args!("rebuilt with {}, position {position}", plural(sets, "chartset")))
}

/// Fills a new index with all listed chartsets. Returns its position.
async fn fill(node: &Node, progress: &ProgressBar) -> Result<Position> {
    node.writer.begin_rebuild().await?;
    // Read before the first chartset, so that all later changes come after this position.
    let position = node.store.feed_position().await?;
    let mut batches = Batches::new(node, Target::Rebuild);
    let mut after = None;
    loop {
        let sets = node.store.indexed_chartsets_after(after, BATCH_SIZE).await?;
        let Some(last) = sets.last() else { break };
        after = Some(last.chartset.id);
        let count = sets.len() as u64;
        batches.send(sets).await?;
        progress.inc(count);
    }
    let rejected = batches.finish().await?;
    node.writer.record_quarantine(Target::Rebuild, &[], &[], &rejected).await?;
    node.writer.set_position(Target::Rebuild, position).await?;
    Ok(position)
}

/// Applies the last changes to the new index, compares it with PostgreSQL, and swaps it with the live index.
/// Needs the lock [`ProcessRole::Write`].
async fn swap(node: &Node, from: Position) -> Result<Position> {
    let position = catch_up(node, Target::Rebuild, from).await?;
    check(node, position).await?;
    node.locks.check().await?;
    node.writer.finish_rebuild().await?;
    Ok(position)
}

/// Compares the new index, which is at `position`, with PostgreSQL: the exact number of chartsets, and all
/// attributes of some samples. Chartsets that changed after the position, and those that the node rejected, are
/// ignored on both sides.
async fn check(node: &Node, position: Position) -> Result<()> {
    let mut differing = Vec::new();
    for sample in 0..SAMPLES {
        let start = ChartsetId::from_bytes((u64::MAX / SAMPLES * sample).to_be_bytes());
        let sets = node.store.indexed_chartsets_after(Some(start), SAMPLE_SIZE).await?;
        let ids: Vec<ChartsetId> = sets.iter().map(|set| set.chartset.id).collect();
        differing.extend(node.writer.compare(Target::Rebuild, &ids, &sets).await?);
    }
    let shown = node.store.shown_count(position).await?;
    let changed: HashSet<ChartsetId> = shown.changed.iter().copied().collect();
    let quarantined = node.writer.read_quarantined(Target::Rebuild).await?.into_iter().map(|set| set.id);
    let quarantined: HashSet<ChartsetId> = quarantined.filter(|id| !changed.contains(id)).collect();
    differing.retain(|finding| !changed.contains(&finding.id) && !quarantined.contains(&finding.id));
    if let Some(finding) = differing.first() {
        bail!(
            "the new index differs from PostgreSQL in {} of the sampled chartsets, the first: {finding}",
            differing.len()
        );
    }
    let count = unchanged_count(node, Target::Rebuild, &shown.changed).await? + quarantined.len() as u64;
    ensure!(
        count == shown.unchanged,
        "the new index has {count} chartsets, PostgreSQL has {}",
        shown.unchanged
    );
    Ok(())
}

/// The number of chartsets in an index, without those that changed.
pub(crate) async fn unchanged_count(node: &Node, target: Target, changed: &[ChartsetId]) -> Result<u64> {
    let mut count = node.writer.count(target).await?;
    for ids in changed.chunks(BATCH_SIZE as usize) {
        count = count.saturating_sub(node.writer.count_present(target, ids).await?);
    }
    Ok(count)
}
