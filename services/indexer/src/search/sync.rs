//! `chart-indexer sync`: nodes are brought up to the catalogue, once or for as long as the program runs.

use std::convert::Infallible;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chart_index_domain::search::Checkpoint;
use chart_index_search::{FORMAT, IndexWriter, Target};
use chart_index_store::{ChangesListener, NodeRole, Store};
use tokio::task::JoinSet;

use crate::ingest::now_ms;
use crate::report::Progress;
use crate::search::node::{Node, Written};
use crate::search::pass::{Pass, pass};
use crate::search::rebuild::rebuild_node;

/// How long after a pass the next one begins at the earliest: changes that come together are written together.
const REST: Duration = Duration::from_millis(100);
/// How long a notification is waited for. One that was lost is made up for after that.
const LISTENING: Duration = Duration::from_secs(5);
/// How soon to look again while transactions are under way, at first and at last.
const UNSETTLED: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long a node that failed is left alone, at first and at last.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long a single `sync` waits for transactions that hold up what was committed before it began.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often what is no longer needed is deleted, and how long it is kept.
const TIDYING_INTERVAL: Duration = Duration::from_hours(1);
const KEPT: Duration = Duration::from_hours(24);

/// How far each node is, as far as it is known.
struct Checkpoints(Mutex<Vec<Option<Checkpoint>>>);

impl Checkpoints {
    fn set(&self, node: usize, checkpoint: Checkpoint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[node] = Some(checkpoint);
    }

    /// The lowest, when all are known.
    fn lowest(&self) -> Option<Checkpoint> {
        let checkpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.iter().copied().min().flatten()
    }
}

/// One of the nodes that this program follows the catalogue with.
struct Follower {
    store: Store,
    writer: IndexWriter,
    number: usize,
    checkpoints: Arc<Checkpoints>,
    tidied: Option<Instant>,
}

/// Brings every node up to the catalogue. With `follow`, goes on for ever, and tries nodes that fail again and again.
///
/// # Errors
/// Without `follow`: when a node fails, after all others are done.
pub(crate) async fn sync(store: &Store, writers: Vec<IndexWriter>, follow: bool) -> Result<()> {
    let listener = follow.then(|| store.changes_listener());
    let checkpoints = Arc::new(Checkpoints(Mutex::new(vec![None; writers.len()])));
    let mut nodes = JoinSet::new();
    for (number, writer) in writers.into_iter().enumerate() {
        let (store, checkpoints, listener) = (store.clone(), checkpoints.clone(), listener.clone());
        let mut follower = Follower { store, writer, number, checkpoints, tidied: None };
        nodes.spawn(async move {
            match listener {
                Some(listener) => Box::pin(follower.follow(listener)).await,
                None => follower.once().await.map_err(|error| follower.tell_error(&error)),
            }
        });
    }
    let (count, mut failed) = (nodes.len(), 0);
    while let Some(done) = nodes.join_next().await {
        failed += usize::from(done?.is_err());
    }
    ensure!(failed == 0, "{failed} of {count} nodes not up to date");
    Ok(())
}

impl Follower {
    fn tell_error(&self, error: &anyhow::Error) {
        let _ = writeln!(std::io::stderr(), "{}: {error:#}", self.writer.node_url());
    }

    /// Applies everything that is committed when it begins.
    async fn once(&mut self) -> Result<()> {
        let node = Node::connect(&self.store, &self.writer).await?;
        ensure!(node.locks.try_acquire(NodeRole::Sync).await?, "another process keeps this node up to date");
        let (start, mut written) = (Instant::now(), Written::default());
        let (mut goal, mut pauses) = (None, Pauses::new(UNSETTLED));
        loop {
            let step = step(&node).await?;
            written += step.written;
            let goal = *goal.get_or_insert(step.committed);
            if !step.is_last {
                continue;
            }
            let checkpoint = step.recorded.checkpoint;
            if checkpoint >= goal {
                tell_written(&node, written, checkpoint)?;
                return self.tidy(&node, checkpoint).await;
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "changes wait for a transaction that is still running in PostgreSQL"
            );
            tokio::time::sleep(pauses.next()).await;
        }
    }

    /// Follows the catalogue until the program ends.
    async fn follow(&mut self, mut listener: ChangesListener) -> Result<(), ()> {
        let mut pauses = Pauses::new(BACKOFF);
        loop {
            let Err(error) = self.follow_until_it_fails(&mut listener, &mut pauses).await;
            let pause = pauses.next();
            self.tell_error(&error);
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_until_it_fails(
        &mut self,
        listener: &mut ChangesListener,
        failures: &mut Pauses,
    ) -> Result<Infallible> {
        let node = Node::connect(&self.store, &self.writer).await?;
        if !node.locks.try_acquire(NodeRole::Sync).await? {
            node.tell(format_args!("another process keeps this node up to date, waiting for it to end"))?;
            node.locks.acquire(NodeRole::Sync).await?;
        }
        let (mut written, mut pauses) = (Written::default(), Pauses::new(UNSETTLED));
        loop {
            let step = step(&node).await?;
            failures.reset();
            written += step.written;
            if !step.is_last {
                continue;
            }
            let checkpoint = step.recorded.checkpoint;
            if written != Written::default() {
                tell_written(&node, std::mem::take(&mut written), checkpoint)?;
                pauses.reset();
            }
            self.tidy(&node, checkpoint).await?;
            tokio::time::sleep(REST).await;
            let settled = !step.has_running_transactions && checkpoint == step.committed;
            listener.changed(if settled { LISTENING } else { pauses.next() }).await;
        }
    }

    /// Notes how far the node is, and now and then deletes what nobody needs any more.
    async fn tidy(&mut self, node: &Node, checkpoint: Checkpoint) -> Result<()> {
        self.checkpoints.set(self.number, checkpoint);
        if self.tidied.is_some_and(|at| at.elapsed() < TIDYING_INTERVAL) {
            return Ok(());
        }
        self.tidied = Some(Instant::now());
        node.writer.prune_tasks(KEPT).await?;
        if let Some(applied) = self.checkpoints.lowest() {
            let kept_ms = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
            node.store.prune_changes(applied, now_ms() - kept_ms).await?;
        }
        Ok(())
    }
}

/// One pass over the live index. A node without an index that this program can use gets one first.
async fn step(node: &Node) -> Result<Pass> {
    loop {
        let done = node.writing(pass_or_reason(node)).await?;
        match done {
            Ok(pass) => return Ok(pass),
            Err(reason) => {
                node.tell(format_args!("{reason}, building one"))?;
                Box::pin(rebuild_node(node, &mut Progress::Silent)).await?;
            }
        }
    }
}

/// The pass, or why the live index cannot be brought up to date.
///
/// # Errors
/// Also for the index of a newer version of this program: two versions would go on rebuilding what the other one did.
async fn pass_or_reason(node: &Node) -> Result<Result<Pass, &'static str>> {
    match node.writer.state().await? {
        None => Ok(Err("there is no index")),
        Some(state) if state.format > FORMAT => {
            bail!("the index is of a newer version; to go back to this one, run its `chart-indexer rebuild`")
        }
        Some(state) if state.format < FORMAT => Ok(Err("the index is of an older version")),
        Some(state) => pass(node, Target::Live, state.recorded()).await.map(Ok),
    }
}

fn tell_written(node: &Node, written: Written, checkpoint: Checkpoint) -> Result<()> {
    let Written { put, deleted } = written;
    node.tell(format_args!("{put} put, {deleted} deleted, checkpoint {checkpoint}"))
}

/// Pauses that double.
struct Pauses {
    first: Duration,
    last: Duration,
    next: Duration,
}

impl Pauses {
    const fn new((first, last): (Duration, Duration)) -> Self {
        Self { first, last, next: first }
    }

    const fn reset(&mut self) {
        self.next = self.first;
    }

    fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = self.last.min(pause * 2);
        pause
    }
}
