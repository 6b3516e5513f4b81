//! Writing to one node.

use std::time::Duration;

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, IndexedChartset};

use crate::{NodeConfig, NodeUrl, SearchError};

/// The layout of documents and settings that this program reads and writes. An index of another format is not read,
/// and wants a rebuild.
pub const FORMAT: u32 = 1;

/// What a live index says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexState {
    /// Which changes of the catalogue it holds.
    pub checkpoint: Checkpoint,
    /// The layout of its documents; [`FORMAT`] for one that this program can use.
    pub format: u32,
}

/// Which of the two indexes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The one that is searched.
    Live,
    /// The one that a rebuild fills.
    Rebuild,
}

/// Changes to an index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Batch<'a> {
    /// Sets to add, or to replace as a whole. No id more than once.
    pub put: &'a [IndexedChartset],
    /// Sets to delete; an id that is not there is no error.
    pub delete: &'a [ChartsetId],
}

/// Writes to the index of one node. Clones share its connections.
#[derive(Debug, Clone)]
pub struct IndexWriter {
    config: NodeConfig,
}

const NOT_YET: SearchError = SearchError::Configuration("not written yet");

#[expect(clippy::unused_async, reason = "a skeleton")]
impl IndexWriter {
    /// A writer to the index of that node. Connects to nobody yet.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn new(config: &NodeConfig) -> Result<Self, SearchError> {
        Ok(Self { config: config.clone() })
    }

    /// The node that it writes to.
    #[must_use]
    pub const fn node(&self) -> &NodeUrl {
        &self.config.url
    }

    /// What the live index says of itself; `None` where there is no live index, or one that does not say.
    pub async fn state(&self) -> Result<Option<IndexState>, SearchError> {
        Err(NOT_YET)
    }

    /// Applies changes and waits until they are searchable.
    ///
    /// # Errors
    /// Also when a task fails, or when it did not index as many documents as were sent. What was applied before the
    /// error stays: the same batch may be applied again.
    pub async fn apply(&self, target: Target, batch: &Batch<'_>) -> Result<(), SearchError> {
        let _ = (target, batch);
        Err(NOT_YET)
    }

    /// Says which changes of the catalogue the index holds from now on, and that it has this program's [`FORMAT`].
    /// After everything up to there was applied.
    pub async fn set_checkpoint(&self, target: Target, checkpoint: Checkpoint) -> Result<(), SearchError> {
        let _ = (target, checkpoint);
        Err(NOT_YET)
    }

    /// Makes an empty index for a rebuild, with all settings; deletes what an interrupted rebuild left. The live
    /// index stays as it is.
    pub async fn begin_rebuild(&self) -> Result<(), SearchError> {
        Err(NOT_YET)
    }

    /// Puts the rebuilt index, with its state, in the place of the live one in a single step, and deletes the old
    /// one. Searches see the one or the other.
    pub async fn finish_rebuild(&self) -> Result<(), SearchError> {
        Err(NOT_YET)
    }

    /// How many documents the index holds.
    pub async fn count(&self, target: Target) -> Result<u64, SearchError> {
        let _ = target;
        Err(NOT_YET)
    }

    /// The sets with those ids, as the index holds them, in the order of their ids. Those it does not hold are left
    /// out.
    pub async fn documents(
        &self,
        target: Target,
        ids: &[ChartsetId],
    ) -> Result<Vec<IndexedChartset>, SearchError> {
        let _ = (target, ids);
        Err(NOT_YET)
    }

    /// The sets from that position on, at most so many, as the index holds them. The order is the index's own: it
    /// stays the same while nothing is written.
    pub async fn documents_from(
        &self,
        target: Target,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<IndexedChartset>, SearchError> {
        let _ = (target, offset, limit);
        Err(NOT_YET)
    }

    /// Whether the live index, or the node, has other settings than this program gives them.
    pub async fn settings_differ(&self) -> Result<bool, SearchError> {
        Err(NOT_YET)
    }

    /// Gives the live index and the node this program's settings. Meilisearch may index every document anew.
    pub async fn apply_settings(&self) -> Result<(), SearchError> {
        Err(NOT_YET)
    }

    /// Deletes the node's record of this index's finished tasks that ended longer ago than that.
    pub async fn prune_tasks(&self, older_than: Duration) -> Result<(), SearchError> {
        let _ = older_than;
        Err(NOT_YET)
    }
}
