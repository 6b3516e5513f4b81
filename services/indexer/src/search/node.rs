//! One node, and this process's right to write to it.

use std::io::Write;

use anyhow::{Context, Result};
use chart_index_domain::ChartsetId;
use chart_index_domain::search::IndexedChartset;
use chart_index_search::{Applied, Batch, IndexWriter, Quarantined, SearchError, Target};
use chart_index_store::{NodeLocks, NodeRole, Store};
use tokio::task::JoinSet;

/// Batches that are sent and not yet searchable. Meilisearch does those that wait for it in one go, which takes it
/// hardly longer than one of them, and the next are read from PostgreSQL meanwhile.
const BATCHES_UNDER_WAY: usize = 8;

/// A node, with the locks that this process has on it.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) writer: IndexWriter,
    pub(crate) locks: NodeLocks,
}

impl Node {
    /// A node on which this process has no lock yet.
    pub(crate) async fn connect(store: &Store, writer: &IndexWriter) -> Result<Self> {
        let locks = store.node_locks(writer.node_url().as_str()).await?;
        Ok(Self { store: store.clone(), writer: writer.clone(), locks })
    }

    /// Does something to the live index, alone. After an error the locks are to be dropped.
    pub(crate) async fn writing<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.locks.acquire(NodeRole::Write).await?;
        let result = self.locks.while_held(work).await??;
        self.locks.release(NodeRole::Write).await?;
        Ok(result)
    }

    /// Says on standard error which sets the node does not accept.
    pub(crate) fn warn_of(&self, refused: &[Quarantined]) -> Result<()> {
        let mut output = std::io::stderr().lock();
        for Quarantined { id, bytes } in refused {
            let node = self.writer.node_url();
            writeln!(
                output,
                "{node}: warning: chartset {id} is left out of the index: the node does not accept its document of \
                 {bytes} bytes"
            )
            .context("cannot write")?;
        }
        Ok(())
    }

    /// Prints a line about the node.
    pub(crate) fn tell(&self, message: std::fmt::Arguments<'_>) -> Result<()> {
        writeln!(std::io::stdout(), "{}: {message}", self.writer.node_url()).context("cannot write")
    }
}

/// How many sets were written.
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

/// Writes batches to an index, a few at a time. No set may be in two of them.
pub(crate) struct Batches<'a> {
    node: &'a Node,
    target: Target,
    /// Dropped, they are ended.
    under_way: JoinSet<Result<(Written, Applied), SearchError>>,
    written: Written,
    refused: Vec<Quarantined>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(node: &'a Node, target: Target) -> Self {
        Self { node, target, under_way: JoinSet::new(), written: Written::default(), refused: Vec::new() }
    }

    /// Sends a batch, after one before it when there are many.
    pub(crate) async fn send(&mut self, put: Vec<IndexedChartset>, delete: Vec<ChartsetId>) -> Result<()> {
        while self.under_way.len() >= BATCHES_UNDER_WAY {
            self.join_next().await?;
        }
        self.node.locks.check().await?;
        let (writer, target) = (self.node.writer.clone(), self.target);
        self.under_way.spawn(async move {
            let applied = writer.apply(target, &Batch { put: &put, delete: &delete }).await?;
            let put = put.len() - applied.rejected.len();
            Ok((Written { put: put as u64, deleted: delete.len() as u64 }, applied))
        });
        Ok(())
    }

    /// Waits for all of them. Gives what was written, and the sets that the node did not accept.
    pub(crate) async fn finish(mut self) -> Result<(Written, Vec<Quarantined>)> {
        while !self.under_way.is_empty() {
            self.join_next().await?;
        }
        self.node.warn_of(&self.refused)?;
        Ok((self.written, self.refused))
    }

    async fn join_next(&mut self) -> Result<()> {
        if let Some(done) = self.under_way.join_next().await {
            let (written, applied) = done??;
            self.written += written;
            self.refused.extend(applied.rejected);
        }
        Ok(())
    }
}
