//! `chart-indexer verify --search`: the live index of every node is compared with PostgreSQL, set by set, and its
//! settings with those of this version.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_domain::ChartsetId;
use chart_index_search::{Difference, DifferenceKind, FORMAT, IndexWriter, Target};
use chart_index_store::{NodeRole, Snapshot, Store};

use crate::report::{Progress, plural};
use crate::search::node::Node;
use crate::search::rebuild::unchanged_count;

/// Sets that are compared at once.
const PAGE: u32 = 1_000;
/// Differences that are printed.
const PRINTED: usize = 20;
/// How long a node that is kept up to date may take to come up with what was committed before the check.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);

/// Compares every node with PostgreSQL and prints the differences. Sets that change meanwhile are none.
///
/// # Errors
/// There are differences, or a node cannot be read, after all others are done.
pub(crate) async fn verify(store: &Store, writers: &[IndexWriter]) -> Result<()> {
    let mut failed = 0;
    for writer in writers {
        match verify_node(store, writer).await {
            Ok(0) => (),
            Ok(_) => failed += 1,
            Err(error) => {
                failed += 1;
                writeln!(std::io::stderr(), "{}: {error:#}", writer.node_url())?;
            }
        }
    }
    ensure!(failed == 0, "{failed} of {} nodes are not equal to PostgreSQL", writers.len());
    Ok(())
}

/// Gives how many differences there are.
async fn verify_node(store: &Store, writer: &IndexWriter) -> Result<usize> {
    let node = Node::connect(store, writer).await?;
    let begin = store.snapshot().await?;
    let (count, suspects) = scan(&node).await?;
    let mut findings = settle(&node, &begin, suspects).await?;
    explain(&node, &mut findings).await?;
    let settings = writer.setting_differences().await?;
    for setting in &settings {
        node.tell(format_args!("{setting}"))?;
    }
    for finding in findings.iter().take(PRINTED) {
        node.tell(format_args!("{finding}"))?;
    }
    if findings.len() > PRINTED {
        node.tell(format_args!("and {} more", findings.len() - PRINTED))?;
    }
    let differences = findings.len() + settings.len();
    let (compared, differing) = (plural(count, "chartset"), plural(differences as u64, "difference"));
    node.tell(format_args!("{compared} compared, {differing}"))?;
    Ok(differences)
}

/// Names the sets that are missing because the node does not accept their documents.
async fn explain(node: &Node, findings: &mut [Difference]) -> Result<()> {
    let quarantined = node.writer.quarantined(Target::Live).await?;
    let bytes: HashMap<ChartsetId, u64> = quarantined.iter().map(|set| (set.id, set.bytes)).collect();
    for finding in findings.iter_mut().filter(|finding| finding.kind == DifferenceKind::Missing) {
        if let Some(&bytes) = bytes.get(&finding.id) {
            finding.kind = DifferenceKind::TooLarge { bytes };
        }
    }
    Ok(())
}

/// Compares all sets while both sides may change. Gives how many there are, and those to look at again.
async fn scan(node: &Node) -> Result<(u64, BTreeSet<ChartsetId>)> {
    let mut progress = Progress::new(node.store.counts().await?.chartsets);
    let (mut count, mut suspects, mut after) = (0, BTreeSet::new(), None);
    loop {
        let sets = node.store.indexed_chartsets_after(after, PAGE).await?;
        let Some(last) = sets.last() else { break };
        after = Some(last.chartset.id);
        count += sets.len() as u64;
        progress.advance_by(sets.len() as u64);
        let ids: Vec<ChartsetId> = sets.iter().map(|set| set.chartset.id).collect();
        suspects
            .extend(node.writer.compare(Target::Live, &ids, &sets).await?.iter().map(|finding| finding.id));
    }
    progress.finish();
    Ok((count, suspects))
}

/// Looks at the suspects again while nobody writes to the index, at whatever the index has not come up with, and at
/// the number of sets. Where somebody keeps the node up to date, they get some time to do so.
async fn settle(
    node: &Node,
    begin: &Snapshot,
    mut suspects: BTreeSet<ChartsetId>,
) -> Result<Vec<Difference>> {
    let start = Instant::now();
    loop {
        let (mut findings, lags) = node.writing(look_again(node, &mut suspects)).await?;
        let ids: Vec<ChartsetId> = findings.iter().map(|finding| finding.id).collect();
        let changed = node.store.changed_since(begin, &ids).await?;
        findings.retain(|finding| !changed.contains(&finding.id));
        if findings.is_empty() || !lags || start.elapsed() > PATIENCE || !is_synced(node).await? {
            return Ok(findings);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether another process keeps the node up to date.
async fn is_synced(node: &Node) -> Result<bool> {
    let free = node.locks.try_acquire(NodeRole::Sync).await?;
    if free {
        node.locks.release(NodeRole::Sync).await?;
    }
    Ok(!free)
}

/// The differences that there are, and whether changes wait to be applied.
async fn look_again(node: &Node, suspects: &mut BTreeSet<ChartsetId>) -> Result<(Vec<Difference>, bool)> {
    let state = node.writer.state().await?.context("there is no index: run `chart-indexer rebuild`")?;
    ensure!(state.format == FORMAT, "the index is of another version: run `chart-indexer rebuild`");
    // That the checkpoint means something.
    node.store.changes(state.recorded(), 1).await?;
    let shown = node.store.shown_count(state.checkpoint).await?;
    suspects.extend(&shown.changed);
    let findings = compare_all(node, suspects).await?;
    let missing = findings.iter().filter(|finding| finding.kind == DifferenceKind::Missing);
    let changed: BTreeSet<ChartsetId> = shown.changed.iter().copied().collect();
    let missing = missing.filter(|finding| !changed.contains(&finding.id)).count() as u64;
    let lags = !shown.changed.is_empty();
    if unchanged_count(node, Target::Live, &shown.changed).await? + missing == shown.unchanged {
        return Ok((findings, lags));
    }
    // There are sets in the index that nothing here has named yet.
    suspects.extend(ids_in_index(node).await?);
    Ok((compare_all(node, suspects).await?, lags))
}

async fn compare_all(node: &Node, suspects: &BTreeSet<ChartsetId>) -> Result<Vec<Difference>> {
    let ids: Vec<ChartsetId> = suspects.iter().copied().collect();
    let mut findings = Vec::new();
    for ids in ids.chunks(PAGE as usize) {
        let shown = node.store.indexed_chartsets(ids).await?;
        findings.extend(node.writer.compare(Target::Live, ids, &shown).await?);
    }
    Ok(findings)
}

async fn ids_in_index(node: &Node) -> Result<Vec<ChartsetId>> {
    let mut ids = Vec::new();
    loop {
        let more = node.writer.list_ids(Target::Live, ids.len() as u64, PAGE).await?;
        if more.is_empty() {
            return Ok(ids);
        }
        ids.extend(more);
    }
}
