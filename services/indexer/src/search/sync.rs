//! `chart-indexer sync`, which applies the changes of the catalogue to all nodes once, and the part of `follow`
//! that does so all the time.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chart_index_domain::Position;
use chart_index_instrumentation::{Sampler, metrics};
use chart_index_search::{IndexWriter, Target};
use chart_index_store::{ChangesError, ProcessRole, Store};
use chart_index_telemetry::print;
use indicatif::ProgressBar;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Level;
use tracing::{Instrument, Span, field};

use crate::backoff::{MIN_RESTART_PAUSE, NODE_RESTART, Pauses};
use crate::metrics::NodeMetrics;
use crate::search::earlier_formats::delete_earlier_formats;
use crate::search::node::{Node, Written};
use crate::search::pass::{CHANGES_PER_PASS, Pass, apply, changes_after};
use crate::search::rebuild::rebuild_node;

/// Maximum time between two passes. The node may have been restored to an earlier state meanwhile.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// How often old tasks and unused indexes are deleted.
const CLEAN_UP_INTERVAL: Duration = Duration::from_hours(1);
/// How long tasks are retained.
const RETENTION: Duration = Duration::from_hours(24);

/// The position of the index of a node, once it is known.
pub(crate) type NodePosition = watch::Receiver<Option<Position>>;

/// Applies the changes of the catalogue to one node.
pub(crate) struct Follower {
    store: Store,
    writer: IndexWriter,
    position: watch::Sender<Option<Position>>,
    metrics: NodeMetrics,
    sampler: Sampler,
    cleaned_up_at: Option<Instant>,
    /// The positions before and after the changes of the last pass, unless it succeeded.
    unfinished: Option<(Position, Position)>,
}

/// Applies all changes to all nodes. The sampler decides which passes have a span.
///
/// # Errors
/// A node failed. The other nodes are up to date.
pub(crate) async fn sync(store: &Store, writers: Vec<IndexWriter>, sampler: Sampler) -> Result<()> {
    let mut nodes = JoinSet::new();
    for mut follower in Follower::of_nodes(store, writers, sampler) {
        nodes.spawn(async move {
            Box::pin(follower.sync_once()).await.map_err(|error| follower.print_error(&error))
        });
    }
    let (count, mut failed) = (nodes.len(), 0);
    while let Some(done) = nodes.join_next().await {
        failed += usize::from(done?.is_err());
    }
    ensure!(failed == 0, "sync failed for {failed} of {count} nodes");
    Ok(())
}

impl Follower {
    pub(crate) fn of_nodes(store: &Store, writers: Vec<IndexWriter>, sampler: Sampler) -> Vec<Self> {
        let new = |writer: IndexWriter| {
            let (store, position) = (store.clone(), watch::Sender::default());
            let metrics = NodeMetrics::new(metrics(), writer.node_url().address());
            Self { store, writer, position, metrics, sampler, cleaned_up_at: None, unfinished: None }
        };
        writers.into_iter().map(new).collect()
    }

    /// The position of the index, which the follower updates.
    pub(crate) fn position(&self) -> NodePosition {
        self.position.subscribe()
    }

    fn print_error(&self, error: &anyhow::Error) {
        print(Level::WARN, format_args!("{}: {error:#}", self.writer.node_url()));
    }

    /// Applies all changes that are committed when it starts.
    async fn sync_once(&mut self) -> Result<()> {
        let node = Node::connect(&self.store, &self.writer).await?;
        ensure!(
            node.locks.try_acquire(ProcessRole::Sync).await?,
            "another process is already syncing this node"
        );
        let goal = self.store.feed_position().await?;
        let mut written = Written::default();
        loop {
            let pass = self.run_pass(&node).await?;
            written += pass.written;
            if pass.position.sequence >= goal.sequence {
                print_written(&node, written, pass.position)?;
                return self.clean_up().await;
            }
        }
    }

    /// Applies changes as they are made. After an error, pauses at most until there is a new number, which
    /// also shows that PostgreSQL responds again. Never returns.
    pub(crate) async fn follow(mut self, mut numbers: watch::Receiver<u64>) -> Infallible {
        let mut pauses = Pauses::new(NODE_RESTART);
        loop {
            let Err(error) = Box::pin(self.follow_until_error(&mut numbers, &mut pauses)).await;
            let pause = pauses.next();
            self.print_error(&error);
            tokio::time::sleep(MIN_RESTART_PAUSE).await;
            let _ = tokio::time::timeout(pause.saturating_sub(MIN_RESTART_PAUSE), numbers.changed()).await;
        }
    }

    async fn follow_until_error(
        &mut self,
        numbers: &mut watch::Receiver<u64>,
        restarts: &mut Pauses,
    ) -> Result<Infallible> {
        let node = Node::connect(&self.store, &self.writer).await?;
        if !node.locks.try_acquire(ProcessRole::Sync).await? {
            node.print(format_args!("another process is already syncing this node, waiting for it to end"))?;
            self.wait_for_other_follower(&node).await?;
        }
        let mut written = Written::default();
        loop {
            let pass = self.run_pass(&node).await?;
            restarts.reset();
            written += pass.written;
            if !pass.is_last {
                continue;
            }
            if written != Written::default() {
                print_written(&node, std::mem::take(&mut written), pass.position)?;
            }
            self.clean_up().await?;
            // Returns at once if there was a new number during the pass.
            let _ = tokio::time::timeout(MAX_PAUSE, numbers.changed()).await;
        }
    }

    /// Waits until no other process follows the index. Reads the position that the other one has set meanwhile.
    async fn wait_for_other_follower(&self, node: &Node) -> Result<()> {
        let acquired = node.locks.acquire(ProcessRole::Sync);
        tokio::pin!(acquired);
        loop {
            if let Some(position) = self.writer.read_position().await? {
                self.position.send_replace(Some(position));
            }
            if let Ok(acquired) = tokio::time::timeout(MAX_PAUSE, &mut acquired).await {
                return Ok(acquired?);
            }
        }
    }

    /// Deletes old tasks of the node and indexes that are no longer used, once per [`CLEAN_UP_INTERVAL`].
    async fn clean_up(&mut self) -> Result<()> {
        if self.cleaned_up_at.is_none_or(|at| at.elapsed() >= CLEAN_UP_INTERVAL) {
            self.cleaned_up_at = Some(Instant::now());
            self.writer.prune_tasks(RETENTION).await?;
            delete_earlier_formats(&self.store, &self.writer).await?;
        }
        Ok(())
    }

    /// Runs a pass on the live index, which it builds first where there is none.
    async fn run_pass(&mut self, node: &Node) -> Result<Pass> {
        loop {
            if let Some(pass) = self.observe_pass(node).await? {
                return Ok(pass);
            }
            node.print(format_args!("no index, rebuilding"))?;
            Box::pin(rebuild_node(node, &ProgressBar::hidden())).await?;
        }
    }

    /// Runs a pass in a span, and records it. A pass that finds no index is not recorded.
    async fn observe_pass(&mut self, node: &Node) -> Result<Option<Pass>> {
        let (start, span) = (Instant::now(), self.pass_span());
        let result = node.with_write_lock(self.try_pass(node)).instrument(span.clone()).await;
        match &result {
            Ok(Some(Pass { written: Written { put, deleted }, quarantined, .. })) => {
                self.metrics.record_pass(start.elapsed(), *put, *deleted, *quarantined);
                // Unsigned numbers would be exported as text.
                span.record("chart_index.sync.put", put.cast_signed());
                span.record("chart_index.sync.deleted", deleted.cast_signed());
            }
            Ok(None) => (),
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

    /// Runs a pass. `None` where there is no index.
    async fn try_pass(&mut self, node: &Node) -> Result<Option<Pass>> {
        let Some(position) = node.writer.read_position().await? else { return Ok(None) };
        let position = self.lost_position(node, position).await?.unwrap_or(position);
        self.position.send_replace(Some(position));
        let changes = changes_after(&self.store, position, CHANGES_PER_PASS).await?;
        self.unfinished = Some((position, changes.next));
        let pass = apply(node, Target::Live, position, &changes).await?;
        self.unfinished = None;
        self.position.send_replace(Some(pass.position));
        Ok(Some(pass))
    }

    /// A pass that failed may have written some of its changes. If PostgreSQL has lost these since, in a
    /// failover or a restore, the index needs a rebuild: then sets its position to that of the lost changes,
    /// from which the feed does not continue, and returns it. Without this, the index would have the lost
    /// changes at a position before them, which only `verify --search` finds. That still happens if this
    /// process is killed in between: a record of each pass in the node would take another second.
    async fn lost_position(&mut self, node: &Node, current: Position) -> Result<Option<Position>> {
        let Some((_, lost)) = self.unfinished.filter(|(from, _)| *from == current) else { return Ok(None) };
        match self.store.chartset_changes(lost, 0).await {
            Err(ChangesError::RebuildNeeded { .. }) => {
                node.locks.check().await?;
                node.writer.set_position(Target::Live, lost).await?;
                self.unfinished = None;
                Ok(Some(lost))
            }
            Err(ChangesError::Read(error)) => Err(error.into()),
            Ok(_) => Ok(None),
        }
    }
}

fn print_written(node: &Node, written: Written, position: Position) -> Result<()> {
    let Written { put, deleted } = written;
    node.print(format_args!("{put} written, {deleted} deleted, position {position}"))
}
