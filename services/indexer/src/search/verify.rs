//! `chart-indexer verify --search`: compares the chartsets and settings of every live index with PostgreSQL and
//! this version.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ChartsetId, Position};
use chart_index_search::{Difference, DifferenceKind, IndexWriter, Target};
use chart_index_store::{ProcessRole, Store};
use chart_index_telemetry::print;
use tracing::Level;

use crate::progress;
use crate::report::plural;
use crate::search::node::Node;
use crate::search::pass::changes_after;
use crate::search::rebuild::unchanged_count;

/// Chartsets that are compared per query.
const PAGE: u32 = 1_000;
/// Maximum number of differences that are printed.
const MAX_PRINTED: usize = 20;
/// How long a running `sync` may take to apply changes that were committed before the check.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between checks whether `sync` has applied them.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Compares all nodes with PostgreSQL and prints the differences. Chartsets that change during the check are
/// ignored.
///
/// # Errors
/// There are differences, or a node cannot be read. All nodes are checked.
pub(crate) async fn verify(store: &Store, writers: &[IndexWriter]) -> Result<()> {
    let mut failed = 0;
    for writer in writers {
        match verify_node(store, writer).await {
            Ok(0) => (),
            Ok(_) => failed += 1,
            Err(error) => {
                failed += 1;
                print(Level::ERROR, format_args!("{}: {error:#}", writer.node_url()));
            }
        }
    }
    ensure!(failed == 0, "verification failed for {failed} of {} nodes", writers.len());
    Ok(())
}

/// Compares a node and returns the number of differences.
async fn verify_node(store: &Store, writer: &IndexWriter) -> Result<usize> {
    let node = Node::connect(store, writer).await?;
    let start = store.feed_position().await?;
    let (count, suspects) = scan(&node).await?;
    let mut findings = recheck(&node, start, suspects).await?;
    mark_rejected(&node, &mut findings).await?;
    let settings = writer.find_setting_differences().await?;
    for setting in &settings {
        node.print(format_args!("{setting}"))?;
    }
    for finding in findings.iter().take(MAX_PRINTED) {
        node.print(format_args!("{finding}"))?;
    }
    if findings.len() > MAX_PRINTED {
        node.print(format_args!("and {} more", findings.len() - MAX_PRINTED))?;
    }
    let differences = findings.len() + settings.len();
    let (compared, differing) = (plural(count, "chartset"), plural(differences as u64, "difference"));
    node.print(format_args!("{compared} compared, {differing}"))?;
    Ok(differences)
}

/// Marks the chartsets that are missing because the node rejected their documents.
async fn mark_rejected(node: &Node, findings: &mut [Difference]) -> Result<()> {
    let quarantined = node.writer.read_quarantined(Target::Live).await?;
    let bytes: HashMap<ChartsetId, u64> = quarantined.iter().map(|set| (set.id, set.bytes)).collect();
    for finding in findings.iter_mut().filter(|finding| finding.kind == DifferenceKind::Missing) {
        if let Some(&bytes) = bytes.get(&finding.id) {
            finding.kind = DifferenceKind::TooLarge { bytes };
        }
    }
    Ok(())
}

/// Compares all chartsets while both sides may change. Returns their number, and those that differ.
async fn scan(node: &Node) -> Result<(u64, BTreeSet<ChartsetId>)> {
    let progress = progress::items(node.store.counts().await?.chartsets);
    let (mut count, mut suspects, mut after) = (0, BTreeSet::new(), None);
    loop {
        let sets = node.store.indexed_chartsets_after(after, PAGE).await?;
        let Some(last) = sets.last() else { break };
        after = Some(last.chartset.id);
        count += sets.len() as u64;
        progress.inc(sets.len() as u64);
        let ids: Vec<ChartsetId> = sets.iter().map(|set| set.chartset.id).collect();
        suspects
            .extend(node.writer.compare(Target::Live, &ids, &sets).await?.iter().map(|finding| finding.id));
    }
    drop(progress);
    Ok((count, suspects))
}

/// Compares the suspects again while no other process writes to the index, together with all chartsets that the
/// index is behind with, and the number of chartsets. Gives a running `sync` up to [`SYNC_TIMEOUT`] to catch
/// up.
async fn recheck(
    node: &Node,
    since: Position,
    mut suspects: BTreeSet<ChartsetId>,
) -> Result<Vec<Difference>> {
    let start = Instant::now();
    loop {
        let (mut findings, lags) = node.with_write_lock(recheck_locked(node, &mut suspects)).await?;
        let ids: Vec<ChartsetId> = findings.iter().map(|finding| finding.id).collect();
        let changed = node.store.changed_since(since, &ids).await?;
        findings.retain(|finding| !changed.contains(&finding.id));
        if findings.is_empty() || !lags || start.elapsed() > SYNC_TIMEOUT || !is_synced(node).await? {
            return Ok(findings);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether another process syncs the node.
async fn is_synced(node: &Node) -> Result<bool> {
    let free = node.locks.try_acquire(ProcessRole::Sync).await?;
    if free {
        node.locks.release(ProcessRole::Sync).await?;
    }
    Ok(!free)
}

/// The differences, and whether there are changes that are not applied yet.
async fn recheck_locked(node: &Node, suspects: &mut BTreeSet<ChartsetId>) -> Result<(Vec<Difference>, bool)> {
    let position = node.writer.read_position().await?.context("no index: run `chart-indexer rebuild`")?;
    // Fails if the index has to be rebuilt.
    changes_after(&node.store, position, 0).await?;
    let shown = node.store.shown_count(position).await?;
    suspects.extend(&shown.changed);
    let findings = compare_all(node, suspects).await?;
    let missing = findings.iter().filter(|finding| finding.kind == DifferenceKind::Missing);
    let changed: BTreeSet<ChartsetId> = shown.changed.iter().copied().collect();
    let missing = missing.filter(|finding| !changed.contains(&finding.id)).count() as u64;
    let lags = !shown.changed.is_empty();
    if unchanged_count(node, Target::Live, &shown.changed).await? + missing == shown.unchanged {
        return Ok((findings, lags));
    }
    // The index has chartsets that are not among the suspects.
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
