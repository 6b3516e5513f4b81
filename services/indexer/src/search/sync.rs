//! `chart-indexer sync`: applies the changes of the catalogue to all nodes, once or continuously.

use std::convert::Infallible;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chart_index_domain::search::Checkpoint;
use chart_index_search::{FORMAT, IndexWriter, Target};
use chart_index_store::{ChangesListener, NodeRole, Store};
use tokio::task::JoinSet;

use crate::backoff::{NODE_RESTART, Pauses, RUNNING_TRANSACTIONS};
use crate::ingest::now_ms;
use crate::report::Progress;
use crate::search::node::{Node, Written};
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

/// The checkpoint of each node, if known.
struct Checkpoints(Mutex<Vec<Option<Checkpoint>>>);

impl Checkpoints {
    fn set(&self, node: usize, checkpoint: Checkpoint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[node] = Some(checkpoint);
    }

    /// The lowest checkpoint, if all are known.
    fn lowest(&self) -> Option<Checkpoint> {
        let checkpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.iter().copied().min().flatten()
    }
}

/// Applies the changes of the catalogue to one node.
struct Follower {
    store: Store,
    writer: IndexWriter,
    /// The index of the node in `checkpoints`.
    number: usize,
    checkpoints: Arc<Checkpoints>,
    pruned_at: Option<Instant>,
}

/// Applies all changes to all nodes. With `follow`, continues for ever and retries nodes that fail.
///
/// # Errors
/// Without `follow`: a node failed. The other nodes are up to date.
pub(crate) async fn sync(store: &Store, writers: Vec<IndexWriter>, follow: bool) -> Result<()> {
    let listener = follow.then(|| store.changes_listener());
    let checkpoints = Arc::new(Checkpoints(Mutex::new(vec![None; writers.len()])));
    let mut nodes = JoinSet::new();
    for (number, writer) in writers.into_iter().enumerate() {
        let (store, checkpoints, listener) = (store.clone(), checkpoints.clone(), listener.clone());
        let mut follower = Follower { store, writer, number, checkpoints, pruned_at: None };
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
            let pass = run_pass(&node).await?;
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
            let pass = run_pass(&node).await?;
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
}

/// Runs a pass on the live index. First rebuilds the index of a node that has none, or one with an older format.
async fn run_pass(node: &Node) -> Result<Pass> {
    loop {
        match node.with_write_lock(try_pass(node)).await? {
            Ok(pass) => return Ok(pass),
            Err(reason) => {
                node.print(format_args!("{reason}, rebuilding"))?;
                Box::pin(rebuild_node(node, &mut Progress::Silent)).await?;
            }
        }
    }
}

/// Runs a pass, or returns why the live index has to be rebuilt first.
///
/// # Errors
/// Among others, the index has a newer format. It is not rebuilt: two versions of this program would alternate.
async fn try_pass(node: &Node) -> Result<Result<Pass, &'static str>> {
    match node.writer.state().await? {
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
