//! `chart-indexer sync`: applies the changes of the catalogue to all nodes, once or continuously.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chart_index_domain::search::Checkpoint;
use chart_index_instrumentation::{Sampler, meter};
use chart_index_search::{FORMAT, IndexWriter, Target};
use chart_index_store::{ChangesListener, NodeRole, Store};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span, field};

use crate::backoff::{NODE_RESTART, Pauses, RUNNING_TRANSACTIONS};
use crate::change_feed;
use crate::clock::now_ms;
use crate::filter;
use crate::metrics::{BacklogGauges, NodeMetrics};
use crate::report::Progress;
use crate::search::checkpoints::Checkpoints;
use crate::search::node::{Node, Written};
use crate::search::outbox_watch;
use crate::search::pass::{Pass, pass};
use crate::search::rebuild::rebuild_node;

/// Minimum pause between passes, so that changes made at about the same time are written together.
const MIN_PASS_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum wait for a notification. After that, changes whose notification was lost are found.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a single `sync` waits for running transactions that delay changes committed before it started.
const TRANSACTIONS_TIMEOUT: Duration = Duration::from_mins(1);
/// How often old tasks and changes are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
/// How long tasks and changes are retained.
const RETENTION: Duration = Duration::from_hours(24);

/// Applies the changes of the catalogue to one node.
struct Follower {
    store: Store,
    writer: IndexWriter,
    /// The index of the node in `checkpoints`.
    number: usize,
    checkpoints: Arc<Checkpoints>,
    metrics: NodeMetrics,
    sampler: Sampler,
    pruned_at: Option<Instant>,
}

/// Applies all changes to all nodes. With `follow`, continues for ever and retries nodes that fail. The sampler
/// decides which passes have a span.
///
/// # Errors
/// Without `follow`: a node failed. The other nodes are up to date.
pub(crate) async fn sync(
    store: &Store,
    writers: Vec<IndexWriter>,
    follow: bool,
    sampler: Sampler,
) -> Result<()> {
    let listener = follow.then(|| store.changes_listener());
    let _feed = listener.clone().map(|listener| follow_change_feed(store, listener));
    if !follow {
        change_feed::assign(store).await?;
    }
    let checkpoints = Arc::new(Checkpoints::of_nodes(writers.len()));
    let _watch = follow.then(|| watch_outbox(store, &checkpoints));
    let _filter = follow.then(|| AbortOnDropHandle::new(tokio::spawn(filter::follow(store.clone()))));
    let addresses: Vec<&str> = writers.iter().map(|writer| writer.node_url().address()).collect();
    let metrics = NodeMetrics::of_nodes(&meter(), &addresses);
    let mut nodes = JoinSet::new();
    for (number, (writer, metrics)) in writers.into_iter().zip(metrics).enumerate() {
        let (store, checkpoints, listener) = (store.clone(), checkpoints.clone(), listener.clone());
        let mut follower = Follower { store, writer, number, checkpoints, metrics, sampler, pruned_at: None };
        nodes.spawn(async move {
            match listener {
                Some(listener) => Box::pin(follower.follow(listener)).await,
                None => Box::pin(follower.sync_once()).await.map_err(|error| follower.print_error(&error)),
            }
        });
    }
    let (count, mut failed) = (nodes.len(), 0);
    while let Some(done) = nodes.join_next().await {
        failed += usize::from(done?.is_err());
    }
    ensure!(failed == 0, "sync failed for {failed} of {count} nodes");
    Ok(())
}

fn follow_change_feed(store: &Store, listener: ChangesListener) -> AbortOnDropHandle<Infallible> {
    let gauges = BacklogGauges::of_change_feed(&meter());
    AbortOnDropHandle::new(tokio::spawn(change_feed::follow(store.clone(), listener, gauges)))
}

fn watch_outbox(store: &Store, checkpoints: &Arc<Checkpoints>) -> AbortOnDropHandle<Infallible> {
    let watch = outbox_watch::watch(store.clone(), checkpoints.clone(), BacklogGauges::of_outbox(&meter()));
    AbortOnDropHandle::new(tokio::spawn(watch))
}

impl Follower {
    fn print_error(&self, error: &anyhow::Error) {
        let _ = writeln!(std::io::stderr(), "{}: {error:#}", self.writer.node_url());
    }

    /// Applies all changes that are committed when it starts.
    async fn sync_once(&mut self) -> Result<()> {
        let node = Node::connect(&self.store, &self.writer).await?;
        ensure!(
            node.locks.try_acquire(NodeRole::Sync).await?,
            "another process is already syncing this node"
        );
        let (start, mut written) = (Instant::now(), Written::default());
        let (mut goal, mut pauses) = (None, Pauses::new(RUNNING_TRANSACTIONS));
        loop {
            let pass = self.run_pass(&node).await?;
            written += pass.written;
            let goal = *goal.get_or_insert(pass.committed);
            if !pass.is_last {
                continue;
            }
            let checkpoint = pass.recorded.checkpoint;
            if checkpoint >= goal {
                print_written(&node, written, checkpoint)?;
                return self.finish_pass(&node, checkpoint).await;
            }
            ensure!(
                start.elapsed() < TRANSACTIONS_TIMEOUT,
                "timed out: changes are delayed by a running transaction in PostgreSQL"
            );
            tokio::time::sleep(pauses.next()).await;
        }
    }

    /// Applies changes until the program ends.
    async fn follow(&mut self, mut listener: ChangesListener) -> Result<(), ()> {
        let mut pauses = Pauses::new(NODE_RESTART);
        loop {
            let Err(error) = Box::pin(self.follow_until_error(&mut listener, &mut pauses)).await;
            let pause = pauses.next();
            self.print_error(&error);
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_until_error(
        &mut self,
        listener: &mut ChangesListener,
        restarts: &mut Pauses,
    ) -> Result<Infallible> {
        let node = Node::connect(&self.store, &self.writer).await?;
        if !node.locks.try_acquire(NodeRole::Sync).await? {
            node.print(format_args!("another process is already syncing this node, waiting for it to end"))?;
            node.locks.acquire(NodeRole::Sync).await?;
        }
        let (mut written, mut pauses) = (Written::default(), Pauses::new(RUNNING_TRANSACTIONS));
        loop {
            let pass = self.run_pass(&node).await?;
            restarts.reset();
            written += pass.written;
            if !pass.is_last {
                continue;
            }
            let checkpoint = pass.recorded.checkpoint;
            if written != Written::default() {
                print_written(&node, std::mem::take(&mut written), checkpoint)?;
                pauses.reset();
            }
            self.finish_pass(&node, checkpoint).await?;
            tokio::time::sleep(MIN_PASS_INTERVAL).await;
            let is_settled = !pass.has_running_transactions && checkpoint == pass.committed;
            listener.changed(if is_settled { NOTIFICATION_TIMEOUT } else { pauses.next() }).await;
        }
    }

    /// Records the checkpoint of the node, and once per [`PRUNE_INTERVAL`] deletes old tasks and changes.
    async fn finish_pass(&mut self, node: &Node, checkpoint: Checkpoint) -> Result<()> {
        self.checkpoints.set(self.number, checkpoint);
        if self.pruned_at.is_some_and(|at| at.elapsed() < PRUNE_INTERVAL) {
            return Ok(());
        }
        self.pruned_at = Some(Instant::now());
        node.writer.prune_tasks(RETENTION).await?;
        if let Some(applied) = self.checkpoints.lowest() {
            let retention_ms = i64::try_from(RETENTION.as_millis()).unwrap_or(i64::MAX);
            node.store.prune_changes(applied, now_ms() - retention_ms).await?;
        }
        Ok(())
    }

    /// Runs a pass on the live index. First rebuilds the index of a node that has none, or one with an older
    /// format.
    async fn run_pass(&self, node: &Node) -> Result<Pass> {
        loop {
            match self.observe_pass(node).await? {
                Ok(pass) => return Ok(pass),
                Err(reason) => {
                    node.print(format_args!("{reason}, rebuilding"))?;
                    Box::pin(rebuild_node(node, &mut Progress::Silent)).await?;
                }
            }
        }
    }

    /// Runs a pass in a span, and records it. A pass that finds that a rebuild is needed is not recorded.
    async fn observe_pass(&self, node: &Node) -> Result<Result<Pass, &'static str>> {
        let (start, span) = (Instant::now(), self.pass_span());
        let result = node.with_write_lock(try_pass(node)).instrument(span.clone()).await;
        match &result {
            Ok(Ok(Pass { written: Written { put, deleted }, quarantined, .. })) => {
                self.metrics.record_pass(start.elapsed(), *put, *deleted, *quarantined);
                // Unsigned numbers would be exported as text.
                span.record("chart_index.sync.put", put.cast_signed());
                span.record("chart_index.sync.deleted", deleted.cast_signed());
            }
            Ok(Err(_)) => (),
            Err(_) => {
                self.metrics.record_pass_failure(start.elapsed());
                span.record("otel.status_code", "ERROR");
            }
        }
        result
    }

    fn pass_span(&self) -> Span {
        if !self.sampler.sample() {
            return Span::none();
        }
        tracing::info_span!(
            parent: None,
            "sync pass",
            "chart_index.search.node" = self.writer.node_url().address(),
            "chart_index.sync.put" = field::Empty,
            "chart_index.sync.deleted" = field::Empty,
            "otel.status_code" = field::Empty,
        )
    }
}

/// Runs a pass, or returns why the live index has to be rebuilt first.
///
/// # Errors
/// Among others, the index has a newer format. It is not rebuilt: two versions of this program would alternate.
async fn try_pass(node: &Node) -> Result<Result<Pass, &'static str>> {
    match node.writer.read_state().await? {
        None => Ok(Err("no index")),
        Some(state) if state.format > FORMAT => {
            bail!("the index has a newer format; to downgrade, run `chart-indexer rebuild` of this version")
        }
        Some(state) if state.format < FORMAT => Ok(Err("the index has an older format")),
        Some(state) => pass(node, Target::Live, state.recorded()).await.map(Ok),
    }
}

fn print_written(node: &Node, written: Written, checkpoint: Checkpoint) -> Result<()> {
    let Written { put, deleted } = written;
    node.print(format_args!("{put} written, {deleted} deleted, checkpoint {checkpoint}"))
}
