//! A Meilisearch node, and the locks of this process on it.

use anyhow::{Context, Result};
use chart_index_domain::search::IndexedChartset;
use chart_index_search::{Applied, IndexBatch, IndexWriter, Quarantined, SearchError, Target};
use chart_index_store::{ProcessLocks, ProcessRole, Store};
use chart_index_telemetry::print;
use tokio::task::JoinSet;
use tracing::Instrument;
use tracing::Level;

use crate::stdout;

/// Maximum number of batches in flight. Meilisearch processes all queued batches together, in little more time
/// than one of them, while the next ones are read from PostgreSQL.
const MAX_BATCHES_IN_FLIGHT: usize = 8;

/// A node, with the locks that this process holds on its index.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) writer: IndexWriter,
    pub(crate) locks: ProcessLocks,
}

impl Node {
    /// Connects without acquiring a lock.
    pub(crate) async fn connect(store: &Store, writer: &IndexWriter) -> Result<Self> {
        let locks = store.process_locks(&writer.index_url()).await?;
        Ok(Self { store: store.clone(), writer: writer.clone(), locks })
    }

    /// Runs `work` under the lock [`ProcessRole::Write`]. After an error the caller must drop the locks.
    pub(crate) async fn with_write_lock<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.locks.acquire(ProcessRole::Write).await?;
        let result = self.locks.while_held(work).await??;
        self.locks.release(ProcessRole::Write).await?;
        Ok(result)
    }

    /// Prints a warning about each chartset whose document the node rejected.
    pub(crate) fn warn_rejected(&self, rejected: &[Quarantined]) {
        let node = self.writer.node_url();
        for Quarantined { id, bytes } in rejected {
            let rejected = format_args!("the node rejects its document of {bytes} bytes");
            print(Level::WARN, format_args!("{node}: warning: chartset {id} is not indexed: {rejected}"));
        }
    }

    /// Prints a message about the node.
    pub(crate) fn print(&self, message: std::fmt::Arguments<'_>) -> Result<()> {
        stdout::print(format_args!("{}: {message}", self.writer.node_url()))
            .context("cannot write to standard output")
    }
}

/// Numbers of chartsets that were written to an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) put: u64,
    pub(crate) deleted: u64,
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.put += other.put;
        self.deleted += other.deleted;
    }
}

/// Writes batches to an index concurrently. A chartset must not be in more than one batch.
pub(crate) struct Batches<'a> {
    node: &'a Node,
    target: Target,
    /// Dropping it cancels the batches.
    in_flight: JoinSet<Result<Applied, SearchError>>,
    rejected: Vec<Quarantined>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(node: &'a Node, target: Target) -> Self {
        Self { node, target, in_flight: JoinSet::new(), rejected: Vec::new() }
    }

    /// Sends a batch, when fewer than [`MAX_BATCHES_IN_FLIGHT`] are in flight.
    pub(crate) async fn send(&mut self, put: Vec<IndexedChartset>) -> Result<()> {
        while self.in_flight.len() >= MAX_BATCHES_IN_FLIGHT {
            self.join_next().await?;
        }
        self.node.locks.check().await?;
        let (writer, target) = (self.node.writer.clone(), self.target);
        let apply = async move { writer.apply(target, &IndexBatch { put: &put, delete: &[] }).await };
        self.in_flight.spawn(apply.in_current_span());
        Ok(())
    }

    /// Waits for all batches. Returns the chartsets that the node rejected.
    pub(crate) async fn finish(mut self) -> Result<Vec<Quarantined>> {
        while !self.in_flight.is_empty() {
            self.join_next().await?;
        }
        self.node.warn_rejected(&self.rejected);
        Ok(self.rejected)
    }

    async fn join_next(&mut self) -> Result<()> {
        if let Some(done) = self.in_flight.join_next().await {
            self.rejected.extend(done??.rejected);
        }
        Ok(())
    }
}
