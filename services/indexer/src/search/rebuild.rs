//! `chart-indexer rebuild`: a new index beside the live one, checked, and put in its place in one step.

use std::collections::HashSet;
use std::io::Write;

use anyhow::{Result, bail, ensure};
use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, RecordedCheckpoint};
use chart_index_search::{IndexWriter, Target};
use chart_index_store::{NodeRole, Store};

use crate::report::{Progress, plural};
use crate::search::node::{Batches, Node};
use crate::search::pass::catch_up;

/// Sets in one batch.
const SETS_OF_A_BATCH: u32 = 4_000;
/// Places, spread over the ids, at which the new index is compared with PostgreSQL, and the sets at each.
const SAMPLES: u64 = 20;
const SETS_OF_A_SAMPLE: u32 = 50;

/// Rebuilds the index of every node, one after the other. Searches go on in the live one until the new one takes
/// its place.
///
/// # Errors
/// When a node fails, after all others are done. Its live index is as it was.
pub(crate) async fn rebuild(store: &Store, writers: &[IndexWriter]) -> Result<()> {
    let mut failed = 0;
    for writer in writers {
        if let Err(error) = rebuild_one(store, writer).await {
            failed += 1;
            writeln!(std::io::stderr(), "{}: {error:#}", writer.node_url())?;
        }
    }
    ensure!(failed == 0, "{failed} of {} nodes not rebuilt", writers.len());
    Ok(())
}

async fn rebuild_one(store: &Store, writer: &IndexWriter) -> Result<()> {
    let mut progress = Progress::new(store.counts().await?.chartsets);
    Box::pin(rebuild_node(&Node::connect(store, writer).await?, &mut progress)).await
}

/// Rebuilds the index of a node on which this process does not hold [`NodeRole::Write`].
///
/// Ended at any moment, it leaves a live index that is whole: the old one, or the new one. After an error the locks
/// are to be dropped.
pub(crate) async fn rebuild_node(node: &Node, progress: &mut Progress) -> Result<()> {
    ensure!(
        node.locks.try_acquire(NodeRole::Rebuild).await?,
        "another process rebuilds the index of this node"
    );
    let (begin, sets) = node.locks.while_held(fill(node, progress)).await??;
    progress.finish();
    // What came meanwhile, which may be much, while sync still follows the live index; then the rest without it.
    let begin = node.locks.while_held(catch_up(node, Target::Rebuild, begin)).await??;
    let checkpoint = node.writing(swap(node, begin)).await?;
    node.locks.release(NodeRole::Rebuild).await?;
    node.tell(format_args!("rebuilt with {}, checkpoint {checkpoint}", plural(sets, "chartset")))
}

/// Fills a new index with every set that is shown. Gives the checkpoint that it has then, and how many there were.
async fn fill(node: &Node, progress: &mut Progress) -> Result<(RecordedCheckpoint, u64)> {
    if node.store.start_outbox_epoch().await? {
        node.tell(format_args!("the database was restored from another server: every node needs a rebuild"))?;
    }
    node.writer.begin_rebuild().await?;
    // Before the first set is read: what changes while they are read follows this checkpoint.
    let checkpoint = node.store.current_checkpoint().await?;
    let mut batches = Batches::new(node, Target::Rebuild);
    let mut after = None;
    loop {
        let sets = node.store.indexed_chartsets_after(after, SETS_OF_A_BATCH).await?;
        let Some(last) = sets.last() else { break };
        after = Some(last.chartset.id);
        let count = sets.len() as u64;
        batches.send(sets, Vec::new()).await?;
        progress.advance_by(count);
    }
    let (written, refused) = batches.finish().await?;
    node.writer.record_quarantine(Target::Rebuild, &[], &[], &refused).await?;
    node.writer.set_checkpoint(Target::Rebuild, checkpoint).await?;
    Ok((checkpoint, written.put))
}

/// Applies the last changes to the new index, compares it with PostgreSQL, and puts it in the place of the live
/// one. Only while nobody else may write to that.
async fn swap(node: &Node, from: RecordedCheckpoint) -> Result<Checkpoint> {
    let checkpoint = catch_up(node, Target::Rebuild, from).await?.checkpoint;
    check(node, checkpoint).await?;
    node.locks.check().await?;
    // Of this catalogue, no index can be further than its horizon: this one followed another.
    if node.writer.state().await?.is_some_and(|live| live.checkpoint > checkpoint) {
        node.writer.set_checkpoint(Target::Live, Checkpoint::default()).await?;
    }
    node.writer.finish_rebuild().await?;
    Ok(checkpoint)
}

/// Compares the new index, which stands at a checkpoint, with PostgreSQL: the count of sets, exactly, and a sample of
/// them, attribute by attribute. Sets that changed since the checkpoint, and those that the node does not accept, count
/// on neither side.
async fn check(node: &Node, checkpoint: Checkpoint) -> Result<()> {
    let mut differing = Vec::new();
    for sample in 0..SAMPLES {
        let start = ChartsetId::from_bytes((u64::MAX / SAMPLES * sample).to_be_bytes());
        let sets = node.store.indexed_chartsets_after(Some(start), SETS_OF_A_SAMPLE).await?;
        let ids: Vec<ChartsetId> = sets.iter().map(|set| set.chartset.id).collect();
        differing.extend(node.writer.compare(Target::Rebuild, &ids, &sets).await?);
    }
    let shown = node.store.shown_count(checkpoint).await?;
    let changed: HashSet<ChartsetId> = shown.changed.iter().copied().collect();
    let quarantined = node.writer.quarantined(Target::Rebuild).await?.into_iter().map(|set| set.id);
    let quarantined: HashSet<ChartsetId> = quarantined.filter(|id| !changed.contains(id)).collect();
    differing.retain(|finding| !changed.contains(&finding.id) && !quarantined.contains(&finding.id));
    if let Some(finding) = differing.first() {
        bail!("the new index is not what PostgreSQL holds, {} sets of a sample: {finding}", differing.len());
    }
    let count = unchanged_count(node, Target::Rebuild, &shown.changed).await? + quarantined.len() as u64;
    ensure!(count == shown.unchanged, "the new index holds {count} sets, PostgreSQL {}", shown.unchanged);
    Ok(())
}

/// How many sets an index holds beside those that changed.
pub(crate) async fn unchanged_count(node: &Node, target: Target, changed: &[ChartsetId]) -> Result<u64> {
    let mut count = node.writer.count(target).await?;
    for ids in changed.chunks(SETS_OF_A_BATCH as usize) {
        count = count.saturating_sub(node.writer.count_present(target, ids).await?);
    }
    Ok(count)
}
