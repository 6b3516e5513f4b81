//! Writing to one node.

use std::collections::HashMap;
use std::time::Duration;

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{Checkpoint, HistoryDigest, IndexedChartset, RecordedCheckpoint};
use meilisearch_sdk::client::SwapIndexes;
use meilisearch_sdk::documents::{DocumentsQuery, DocumentsResults};
use meilisearch_sdk::errors::Error as SdkError;
use meilisearch_sdk::task_info::TaskInfo;
use meilisearch_sdk::tasks::TasksDeleteQuery;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use time::OffsetDateTime;

use crate::difference::{Difference, DifferenceKind};
use crate::document::{Document, PRIMARY_KEY};
use crate::http::Transport;
use crate::node::{Node, StateDocument};
use crate::retry::retried;
use crate::settings::SettingDifference;
use crate::upload::{DOCUMENTS_PER_REQUEST, Upload};
use crate::{NodeConfig, NodeUrl, Quarantined, SearchError, settings};

/// The layout of documents and settings that this program reads and writes. An index of another format is not read,
/// and wants a rebuild. It rises with every change of either, and so of the list item in the documents.
pub const FORMAT: u32 = 2;

/// The statuses of tasks that are over.
const OVER: [&str; 3] = ["succeeded", "failed", "canceled"];

/// What a live index says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexState {
    /// Which changes of the catalogue it holds.
    pub checkpoint: Checkpoint,
    /// Of which history of the catalogue; `None` where that was not recorded.
    pub history: Option<HistoryDigest>,
    /// The layout of its documents; [`FORMAT`] for one that this program can use.
    pub format: u32,
}

impl IndexState {
    /// The checkpoint with its history.
    #[must_use]
    pub const fn recorded(&self) -> RecordedCheckpoint {
        RecordedCheckpoint { checkpoint: self.checkpoint, history: self.history }
    }
}

/// Which of the two indexes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The one that is searched.
    Live,
    /// The one that a rebuild fills.
    Rebuild,
}

/// The one attribute that every document has, whoever wrote it.
#[derive(Debug, Deserialize)]
struct Identified {
    id: ChartsetId,
}

/// Changes to an index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Batch<'a> {
    /// Sets to add, or to replace as a whole. No id more than once.
    pub put: &'a [IndexedChartset],
    /// Sets to delete, none of which is also put; an id that is not there is no error.
    pub delete: &'a [ChartsetId],
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Sets that were not put, and deleted if the index held them: the node does not accept their documents.
    pub refused: Vec<Quarantined>,
}

/// Writes to the index of one node. Clones share its connections.
///
/// The state of an index, which changes of the catalogue it holds, lies in the node itself, in a small index beside it:
/// a node that lost its data, or came back from an old snapshot, knows how old it is.
#[derive(Debug, Clone)]
pub struct IndexWriter {
    pub(crate) node: Node,
}

impl IndexWriter {
    /// A writer to the index of that node. Connects to nobody yet.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn new(config: &NodeConfig) -> Result<Self, SearchError> {
        Node::new(config, config.write_timeout).map(|node| Self { node })
    }

    /// The node that it writes to.
    #[must_use]
    pub const fn node(&self) -> &NodeUrl {
        &self.node.config.url
    }

    /// What the live index says of itself; `None` where there is no live index, or one that does not say.
    pub async fn state(&self) -> Result<Option<IndexState>, SearchError> {
        self.node.state(Target::Live).await
    }

    /// Applies changes and waits until they are searchable.
    ///
    /// # Errors
    /// Also when there is no such index, when a task fails, or when it did not index as many documents as were sent.
    /// What was applied before the error stays: the same batch may be applied again.
    pub async fn apply(&self, target: Target, batch: &Batch<'_>) -> Result<Applied, SearchError> {
        // Meilisearch would make an index without any settings.
        retried(|| self.count(target)).await?;
        let Upload { tasks, refused } = self.node.upload(target, batch.put).await?;
        // What the index may hold of a refused set is out of date.
        let ids: Vec<ChartsetId> =
            batch.delete.iter().copied().chain(refused.iter().map(|set| set.id)).collect();
        let mut deletions = Vec::new();
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            deletions.push((retried(|| self.send_deletions(target, ids)).await?, ids.len()));
        }
        for (task, sent) in &tasks {
            counted(PUT, *sent, self.node.finished(PUT, task).await?.indexed_documents)?;
        }
        for (task, sent) in &deletions {
            counted(DELETE, *sent, self.node.finished(DELETE, task).await?.provided_ids)?;
        }
        Ok(Applied { refused })
    }

    /// Says which changes of the catalogue the index holds from now on, and that it has this program's [`FORMAT`].
    /// After everything up to there was applied.
    pub async fn set_checkpoint(
        &self,
        target: Target,
        recorded: impl Into<RecordedCheckpoint>,
    ) -> Result<(), SearchError> {
        const OPERATION: &str = "set the checkpoint of an index";
        let RecordedCheckpoint { checkpoint, history } = recorded.into();
        let document = StateDocument::new(IndexState { checkpoint, history, format: FORMAT });
        let index = self.node.client.index(self.node.state_uid(target));
        let document = [document];
        let task = retried(async || {
            let sent = index.add_or_replace(&document, Some(PRIMARY_KEY)).await;
            sent.map_err(SearchError::of(OPERATION))
        });
        let task = task.await?;
        counted(OPERATION, 1, self.node.finished(OPERATION, &task).await?.indexed_documents)
    }

    /// Makes an empty index for a rebuild, with all settings; deletes what an interrupted rebuild left. The live
    /// index stays as it is.
    pub async fn begin_rebuild(&self) -> Result<(), SearchError> {
        self.delete_rebuild().await?;
        self.create_index(self.node.state_uid(Target::Rebuild)).await?;
        self.create_index(self.node.uid(Target::Rebuild)).await?;
        self.set_settings(Target::Rebuild).await?;
        self.node.switch_on_features().await
    }

    /// Puts the rebuilt index, with its state, in the place of the live one in a single step, and deletes the old
    /// one. Searches see the one or the other.
    ///
    /// # Errors
    /// [`SearchError::Outdated`] when the rebuilt index has no checkpoint, or an earlier one than the live index.
    pub async fn finish_rebuild(&self) -> Result<(), SearchError> {
        let live = self.node.state(Target::Live).await?;
        let rebuilt = self.node.state(Target::Rebuild).await?.ok_or(SearchError::Outdated)?;
        // A swap whose answer was lost, done again, would bring the old index back.
        if live.is_some_and(|live| live.checkpoint > rebuilt.checkpoint) {
            return Err(SearchError::Outdated);
        }
        self.swap().await?;
        self.delete_rebuild().await
    }

    /// How many documents the index holds.
    pub async fn count(&self, target: Target) -> Result<u64, SearchError> {
        let stats = self.node.index(target).get_stats().await;
        Ok(stats.map_err(SearchError::of("count the documents of an index"))?.number_of_documents as u64)
    }

    /// What the index holds otherwise than these sets, which are those of the ids that are shown: a set that it does
    /// not hold, of which it holds anything else, or that is not shown. In the order of the ids that are given.
    pub async fn compare(
        &self,
        target: Target,
        ids: &[ChartsetId],
        shown: &[IndexedChartset],
    ) -> Result<Vec<Difference>, SearchError> {
        let index = self.node.index(target);
        let mut held = HashMap::with_capacity(ids.len());
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let mut query = DocumentsQuery::new(&index);
            query.with_ids(ids.iter().map(String::as_str)).with_limit(ids.len());
            let documents: Vec<Value> = self.fetch(&query).await?;
            for document in documents {
                let id = Identified::deserialize(&document);
                let Identified { id } = id.map_err(|error| SearchError::nonsense(READ, error))?;
                held.insert(id, document);
            }
        }
        let shown: HashMap<ChartsetId, &IndexedChartset> =
            shown.iter().map(|set| (set.chartset.id, set)).collect();
        let difference = |&id: &ChartsetId| {
            let kind = match (shown.get(&id), held.get(&id)) {
                (Some(set), Some(held)) if Document::of(set).is(held) => return None,
                (Some(_), Some(_)) => DifferenceKind::OtherContent,
                (Some(_), None) => DifferenceKind::Missing,
                (None, Some(_)) => DifferenceKind::NotShown,
                (None, None) => return None,
            };
            Some(Difference { id, kind })
        };
        Ok(ids.iter().filter_map(difference).collect())
    }

    /// How many of these sets the index holds. No id may be given twice.
    pub async fn held(&self, target: Target, ids: &[ChartsetId]) -> Result<u64, SearchError> {
        let index = self.node.index(target);
        let mut held = 0;
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let mut query = DocumentsQuery::new(&index);
            query.with_ids(ids.iter().map(String::as_str)).with_fields([PRIMARY_KEY]).with_limit(ids.len());
            held += self.fetch::<Identified>(&query).await?.len() as u64;
        }
        Ok(held)
    }

    /// The ids of the sets from that position on, at most so many. The order is the index's own: it stays the same
    /// while nothing is written.
    pub async fn ids_from(
        &self,
        target: Target,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<ChartsetId>, SearchError> {
        let index = self.node.index(target);
        let mut query = DocumentsQuery::new(&index);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        query.with_offset(offset).with_limit(limit as usize).with_fields([PRIMARY_KEY]);
        let documents: Vec<Identified> = self.fetch(&query).await?;
        Ok(documents.into_iter().map(|document| document.id).collect())
    }

    /// The settings of the live index and the features of the node that are otherwise than this program sets them.
    /// Features that the key may not read count as set.
    pub async fn setting_differences(&self) -> Result<Vec<SettingDifference>, SearchError> {
        let route = format!("indexes/{}/settings", self.node.uid(Target::Live));
        let told: Value = self.node.get("read the settings of an index", &route).await?;
        let mut differences = settings::differences(&settings::chartsets(), &told);
        let features = self.node.features().await?.unwrap_or_default();
        let off = features.into_iter().filter(|(_, on)| !on);
        differences.extend(off.map(|(name, _)| SettingDifference::FeatureOff(name)));
        Ok(differences)
    }

    /// Gives the live index and the node this program's settings. Meilisearch may index every document anew.
    pub async fn apply_settings(&self) -> Result<(), SearchError> {
        self.count(Target::Live).await?;
        self.set_settings(Target::Live).await?;
        self.node.switch_on_features().await
    }

    /// Deletes the node's record of finished tasks that ended longer ago than that: those of this index, and those
    /// that belong to none because they swapped indexes or deleted such records.
    pub async fn prune_tasks(&self, older_than: Duration) -> Result<(), SearchError> {
        let before = OffsetDateTime::now_utc() - older_than;
        let uids = [Target::Live, Target::Rebuild]
            .map(|target| [self.node.uid(target), self.node.state_uid(target)]);
        let mut of_index = TasksDeleteQuery::new(&self.node.client);
        of_index.with_index_uids(uids.iter().flatten().map(String::as_str));
        let mut of_none = TasksDeleteQuery::new(&self.node.client);
        of_none.with_types(["indexSwap", "taskDeletion"]);
        for mut query in [of_index, of_none] {
            query.with_statuses(OVER).with_before_finished_at(&before);
            let task = self.node.client.delete_tasks_with(&query).await;
            self.finished("prune the tasks of a node", task).await?;
        }
        Ok(())
    }

    async fn send_deletions(&self, target: Target, ids: &[ChartsetId]) -> Result<TaskInfo, SearchError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let sent = self.node.index(target).delete_documents(&ids).await;
        sent.map_err(SearchError::of(DELETE))
    }

    async fn swap(&self) -> Result<(), SearchError> {
        // What is swapped has to exist. An empty index without a state is passed over by every reader.
        for uid in [self.node.uid(Target::Live), self.node.state_uid(Target::Live)] {
            match self.create_index(uid).await {
                Err(SearchError::Task { code, .. }) if code == "index_already_exists" => {}
                created => created?,
            }
        }
        let pair = |uid: fn(&Node, Target) -> String| SwapIndexes {
            indexes: (uid(&self.node, Target::Live), uid(&self.node, Target::Rebuild)),
            rename: None,
        };
        let task = self.node.client.swap_indexes(&[pair(Node::uid), pair(Node::state_uid)]).await;
        self.finished("swap indexes", task).await
    }

    async fn create_index(&self, uid: String) -> Result<(), SearchError> {
        let task = self.node.client.create_index(uid, Some(PRIMARY_KEY)).await;
        self.finished("create an index", task).await
    }

    async fn delete_rebuild(&self) -> Result<(), SearchError> {
        for uid in [self.node.state_uid(Target::Rebuild), self.node.uid(Target::Rebuild)] {
            let task = self.node.client.delete_index(uid).await;
            match self.finished("delete an index", task).await {
                Err(error) if error.is_index_not_found() => {}
                deleted => deleted?,
            }
        }
        Ok(())
    }

    async fn set_settings(&self, target: Target) -> Result<(), SearchError> {
        let task = self.node.index(target).set_settings(&settings::chartsets()).await;
        self.finished("set the settings of an index", task).await
    }

    async fn finished(
        &self,
        operation: &'static str,
        task: Result<TaskInfo, SdkError>,
    ) -> Result<(), SearchError> {
        let task = task.map_err(SearchError::of(operation))?;
        self.node.finished(operation, &task).await.map(drop)
    }

    async fn fetch<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        query: &DocumentsQuery<'_, Transport>,
    ) -> Result<Vec<T>, SearchError> {
        let fetched: DocumentsResults<T> = query.execute().await.map_err(SearchError::of(READ))?;
        Ok(fetched.results)
    }
}

const READ: &str = "read documents";
pub(crate) const PUT: &str = "index documents";
const DELETE: &str = "delete documents";

/// Fails unless a task was about as many documents as were sent.
pub(crate) fn counted(operation: &'static str, sent: usize, done: Option<usize>) -> Result<(), SearchError> {
    match done {
        Some(done) if done == sent => Ok(()),
        done => Err(SearchError::Count { operation, sent, done: done.unwrap_or(0) }),
    }
}
