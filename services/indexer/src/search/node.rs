//! A Meilisearch node, and the locks of this process on it.

use std::io::Write;

use anyhow::{Context, Result};
use chart_index_domain::ChartsetId;
use chart_index_domain::search::IndexedChartset;
use chart_index_search::{Applied, IndexBatch, IndexWriter, Quarantined, SearchError, Target};
use chart_index_store::{NodeLocks, NodeRole, Store};
use tokio::task::JoinSet;
use tracing::Instrument;

/// Maximum number of batches in flight. Meilisearch processes all queued batches together, in little more time
/// than one of them, while the next ones are read from PostgreSQL.
const MAX_BATCHES_IN_FLIGHT: usize = 8;

/// A node, with the locks that this process holds on it.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) writer: IndexWriter,
    pub(crate) locks: NodeLocks,
}

impl Node {
    /// Connects without acquiring a lock.
    pub(crate) async fn connect(store: &Store, writer: &IndexWriter) -> Result<Self> {
        let locks = store.node_locks(writer.node_url().as_str()).await?;
        Ok(Self { store: store.clone(), writer: writer.clone(), locks })
    }

    /// Runs `work` under the lock [`NodeRole::Write`]. After an error the caller must drop the locks.
    pub(crate) async fn with_write_lock<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.locks.acquire(NodeRole::Write).await?;
        let result = self.locks.while_held(work).await??;
        self.locks.release(NodeRole::Write).await?;
        Ok(result)
    }

    /// Prints a warning about each chartset whose document the node rejected.
    pub(crate) fn warn_rejected(&self, rejected: &[Quarantined]) -> Result<()> {
        let mut output = std::io::stderr().lock();
        for Quarantined { id, bytes } in rejected {
            let node = self.writer.node_url();
            writeln!(
                output,
                "{node}: warning: chartset {id} is not indexed: the node rejects its document of {bytes} bytes"
            )
            .context("cannot write to standard error")?;
        }
        Ok(())
    }

    /// Prints a message about the node.
    pub(crate) fn print(&self, message: std::fmt::Arguments<'_>) -> Result<()> {
        writeln!(std::io::stdout(), "{}: {message}", self.writer.node_url())
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
    in_flight: JoinSet<Result<(Written, Applied), SearchError>>,
    written: Written,
    rejected: Vec<Quarantined>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(node: &'a Node, target: Target) -> Self {
        Self { node, target, in_flight: JoinSet::new(), written: Written::default(), rejected: Vec::new() }
    }

    /// Sends a batch, when fewer than [`MAX_BATCHES_IN_FLIGHT`] are in flight.
    pub(crate) async fn send(&mut self, put: Vec<IndexedChartset>, delete: Vec<ChartsetId>) -> Result<()> {
        while self.in_flight.len() >= MAX_BATCHES_IN_FLIGHT {
            self.join_next().await?;
        }
        self.node.locks.check().await?;
        let (writer, target) = (self.node.writer.clone(), self.target);
        let apply = async move {
            let applied = writer.apply(target, &IndexBatch { put: &put, delete: &delete }).await?;
            let put = put.len() - applied.rejected.len();
            Ok((Written { put: put as u64, deleted: delete.len() as u64 }, applied))
        };
        self.in_flight.spawn(apply.in_current_span());
        Ok(())
    }

    /// Waits for all batches. Returns what was written, and the chartsets that the node rejected.
    pub(crate) async fn finish(mut self) -> Result<(Written, Vec<Quarantined>)> {
        while !self.in_flight.is_empty() {
            self.join_next().await?;
        }
        self.node.warn_rejected(&self.rejected)?;
        Ok((self.written, self.rejected))
    }

    async fn join_next(&mut self) -> Result<()> {
        if let Some(done) = self.in_flight.join_next().await {
            let (written, applied) = done??;
            self.written += written;
            self.rejected.extend(applied.rejected);
        }
        Ok(())
    }
}
