//! Writes to the index of one node.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chart_index_domain::search::IndexedChartset;
use chart_index_domain::{ChartsetId, Position};
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
use crate::document::{ChartsetDocument, PRIMARY_KEY};
use crate::index_state::StateDocument;
use crate::node::Node;
use crate::retry::retry;
use crate::settings::SettingDifference;
use crate::tasks::check_count;
use crate::transport::Transport;
use crate::upload::{DOCUMENTS_PER_REQUEST, PUT, Upload};
use crate::{NodeConfig, NodeUrl, Quarantined, SearchError, Target, settings};

/// The statuses of finished tasks.
const FINISHED: [&str; 3] = ["succeeded", "failed", "canceled"];

/// The id of a document, the one attribute that documents of all formats have.
#[derive(Debug, Deserialize)]
struct DocumentId {
    id: ChartsetId,
}

/// Changes to apply to an index together.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexBatch<'a> {
    /// Chartsets to add or replace, each id at most once.
    pub put: &'a [IndexedChartset],
    /// Chartsets to delete, none of which is also put. An id that is not in the index is not an error.
    pub delete: &'a [ChartsetId],
}

/// What [`IndexWriter::apply`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Chartsets whose documents the node rejects as too large. Older documents of them were deleted.
    pub rejected: Vec<Quarantined>,
}

/// Writes to the index of one node. Clones share its connections.
///
/// The position of the index in the change feed is stored in the node, in a small index beside the index of
/// chartsets: a node that lost its data, or was restored from an old snapshot, has an old position.
#[derive(Debug, Clone)]
pub struct IndexWriter {
    pub(crate) node: Node,
}

impl IndexWriter {
    /// A writer to the index of a node. Opens no connection yet.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn new(config: &NodeConfig) -> Result<Self, SearchError> {
        Node::new(config, WRITE_TIMEOUT).map(|node| Self { node })
    }

    /// Identifies the node in messages.
    #[must_use]
    pub const fn node_url(&self) -> &NodeUrl {
        &self.node.config.url
    }

    /// The format of the index: [`FORMAT`](crate::FORMAT), unless it is one of [`Self::earlier_formats`].
    #[must_use]
    pub const fn format(&self) -> u32 {
        self.node.config.format
    }

    /// The URL of the live index, by which programs of one format coordinate their writes.
    #[must_use]
    pub fn index_url(&self) -> String {
        format!("{}/indexes/{}", self.node.config.url, self.node.uid(Target::Live))
    }

    /// The position of the live index; `None` where there is no index, or none with a position.
    pub async fn read_position(&self) -> Result<Option<Position>, SearchError> {
        self.node.read_position(Target::Live).await
    }

    /// Applies changes and waits until searches see them.
    ///
    /// # Errors
    /// Also when the index does not exist, when a task fails, or when it processed another number of documents
    /// than were sent. Part of the batch may then be applied; applying it again is safe.
    pub async fn apply(&self, target: Target, batch: &IndexBatch<'_>) -> Result<Applied, SearchError> {
        // Meilisearch would create a missing index, without settings.
        retry(|| self.count(target)).await?;
        // A node may run the tasks one by one. Deletions come first: between them a list then lacks what was
        // added, and does not have both what was added and what was removed.
        let mut deletions = self.delete(target, batch.delete).await?;
        let Upload { tasks, rejected } = self.node.upload(target, batch.put).await?;
        // The index may have an outdated document of a rejected chartset.
        let outdated: Vec<ChartsetId> = rejected.iter().map(|set| set.id).collect();
        deletions.extend(self.delete(target, &outdated).await?);
        for (task, sent) in &tasks {
            check_count(PUT, *sent, self.node.wait_for_task(PUT, task).await?.indexed_documents)?;
        }
        for (task, sent) in &deletions {
            check_count(DELETE, *sent, self.node.wait_for_task(DELETE, task).await?.provided_ids)?;
        }
        Ok(Applied { rejected })
    }

    /// Sends deletions. Returns the tasks, with the number of ids in each.
    async fn delete(
        &self,
        target: Target,
        ids: &[ChartsetId],
    ) -> Result<Vec<(TaskInfo, usize)>, SearchError> {
        let mut deletions = Vec::new();
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            deletions.push((retry(|| self.send_deletions(target, ids)).await?, ids.len()));
        }
        Ok(deletions)
    }

    /// Sets the position of the index. Call it after all changes up to the position were applied.
    pub async fn set_position(&self, target: Target, position: Position) -> Result<(), SearchError> {
        let task = retry(|| self.send_position(target, position)).await?;
        self.wait_for_position(&task).await
    }

    /// Moves the position of the index, after all changes between these two were applied.
    ///
    /// # Errors
    /// Also when the index has another position: the node was restarted with the data of an earlier time since
    /// the position was read, and lacks changes before it.
    pub async fn advance_position(
        &self,
        target: Target,
        from: Position,
        to: Position,
    ) -> Result<(), SearchError> {
        // Each attempt compares: a request is retried while a node restarts.
        let task = retry(async || match self.node.read_position(target).await? {
            Some(position) if position == from => self.send_position(target, to).await.map(Some),
            // An earlier attempt had no response.
            Some(position) if position == to => Ok(None),
            position => Err(SearchError::PositionChanged { from, position }),
        });
        match task.await? {
            Some(task) => self.wait_for_position(&task).await,
            None => Ok(()),
        }
    }

    /// Creates an empty index with all settings for a rebuild, and deletes that of an interrupted one. The live
    /// index is not changed.
    pub async fn begin_rebuild(&self) -> Result<(), SearchError> {
        self.delete_target(Target::Rebuild).await?;
        self.create_index(self.node.state_uid(Target::Rebuild)).await?;
        self.create_index(self.node.uid(Target::Rebuild)).await?;
        self.set_settings(Target::Rebuild).await?;
        self.node.enable_features().await
    }

    /// Swaps the rebuilt index and its state with the live ones, atomically, and deletes the old index. Every
    /// search sees one or the other. The live index may be of another catalogue, so positions are not compared:
    /// it is not written to from the last changes to the rebuilt one on.
    ///
    /// # Errors
    /// Also when there is no rebuilt index.
    pub async fn finish_rebuild(&self) -> Result<(), SearchError> {
        self.swap().await?;
        self.delete_target(Target::Rebuild).await
    }

    /// The number of documents in the index.
    pub async fn count(&self, target: Target) -> Result<u64, SearchError> {
        let stats = self.node.index(target).get_stats().await;
        Ok(stats.map_err(SearchError::from_sdk("count the documents of an index"))?.number_of_documents
            as u64)
    }

    /// Compares the documents of these ids with `shown`, which has the chartsets of these ids that are shown.
    /// Returns the differences in the order of the ids.
    pub async fn compare(
        &self,
        target: Target,
        ids: &[ChartsetId],
        shown: &[IndexedChartset],
    ) -> Result<Vec<Difference>, SearchError> {
        let stored = self.read_documents(target, ids).await?;
        let shown: HashMap<ChartsetId, &IndexedChartset> =
            shown.iter().map(|set| (set.chartset.id, set)).collect();
        let difference = |&id: &ChartsetId| {
            let kind = match (shown.get(&id), stored.get(&id)) {
                (Some(set), Some(stored)) if ChartsetDocument::new(set).equals(stored) => return None,
                (Some(_), Some(_)) => DifferenceKind::ContentDiffers,
                (Some(_), None) => DifferenceKind::Missing,
                (None, Some(_)) => DifferenceKind::NotShown,
                (None, None) => return None,
            };
            Some(Difference { id, kind })
        };
        Ok(ids.iter().filter_map(difference).collect())
    }

    /// The number of these chartsets that are in the index. The ids have to be distinct.
    pub async fn count_present(&self, target: Target, ids: &[ChartsetId]) -> Result<u64, SearchError> {
        let index = self.node.index(target);
        let mut count = 0;
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let mut query = DocumentsQuery::new(&index);
            query.with_ids(ids.iter().map(String::as_str)).with_fields([PRIMARY_KEY]).with_limit(ids.len());
            count += self.fetch::<DocumentId>(&query).await?.len() as u64;
        }
        Ok(count)
    }

    /// Up to `limit` ids of the index from an offset on, in the order of the index, which is stable while
    /// nothing is written.
    pub async fn list_ids(
        &self,
        target: Target,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<ChartsetId>, SearchError> {
        let index = self.node.index(target);
        let mut query = DocumentsQuery::new(&index);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        query.with_offset(offset).with_limit(limit as usize).with_fields([PRIMARY_KEY]);
        let documents: Vec<DocumentId> = self.fetch(&query).await?;
        Ok(documents.into_iter().map(|document| document.id).collect())
    }

    /// The settings of the live index and the features of the node that differ from those that this program
    /// sets. Features that the API key may not read count as set.
    pub async fn find_setting_differences(&self) -> Result<Vec<SettingDifference>, SearchError> {
        let route = format!("indexes/{}/settings", self.node.uid(Target::Live));
        let actual: Value = self.node.get("read the settings of an index", &route).await?;
        let mut differences = settings::differences(&settings::chartsets(), &actual);
        let features = self.node.read_features().await?.unwrap_or_default();
        let off = features.into_iter().filter(|(_, on)| !on);
        differences.extend(off.map(|(name, _)| SettingDifference::FeatureOff(name)));
        Ok(differences)
    }

    /// A writer for each index of an earlier format that the node has.
    pub async fn earlier_formats(&self) -> Result<Vec<Self>, SearchError> {
        let stats = self.node.client.get_stats().await;
        let stats = stats.map_err(SearchError::from_sdk("list the indexes of a node"))?;
        let prefix = format!("{}_v", self.node.config.index);
        let format = |uid: &String| uid.strip_prefix(&prefix)?.split('_').next()?.parse().ok();
        let formats: BTreeSet<u32> = stats.indexes.keys().filter_map(format).collect();
        let earlier = formats.into_iter().take_while(|format| *format < self.node.config.format);
        earlier.map(|format| Self::new(&NodeConfig { format, ..self.node.config.clone() })).collect()
    }

    /// Deletes the index, its position first, and what an interrupted rebuild of it has left.
    pub async fn delete_index(&self) -> Result<(), SearchError> {
        self.delete_target(Target::Live).await?;
        self.delete_target(Target::Rebuild).await
    }

    /// Deletes finished tasks of a certain age from the node's task list: those of this index, and those that
    /// belong to no index because they swapped indexes or deleted tasks.
    pub async fn prune_tasks(&self, older_than: Duration) -> Result<(), SearchError> {
        let before = OffsetDateTime::now_utc() - older_than;
        let uids = [Target::Live, Target::Rebuild]
            .map(|target| [self.node.uid(target), self.node.state_uid(target)]);
        let mut of_index = TasksDeleteQuery::new(&self.node.client);
        of_index.with_index_uids(uids.iter().flatten().map(String::as_str));
        let mut of_none = TasksDeleteQuery::new(&self.node.client);
        of_none.with_types(["indexSwap", "taskDeletion"]);
        for mut query in [of_index, of_none] {
            query.with_statuses(FINISHED).with_before_finished_at(&before);
            let task = self.node.client.delete_tasks_with(&query).await;
            self.wait_for_task("prune the tasks of a node", task).await?;
        }
        Ok(())
    }

    async fn send_deletions(&self, target: Target, ids: &[ChartsetId]) -> Result<TaskInfo, SearchError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let sent = self.node.index(target).delete_documents(&ids).await;
        sent.map_err(SearchError::from_sdk(DELETE))
    }

    async fn send_position(&self, target: Target, position: Position) -> Result<TaskInfo, SearchError> {
        let index = self.node.client.index(self.node.state_uid(target));
        let sent = index.add_or_replace(&[StateDocument::new(position)], Some(PRIMARY_KEY)).await;
        sent.map_err(SearchError::from_sdk(SET_POSITION))
    }

    async fn wait_for_position(&self, task: &TaskInfo) -> Result<(), SearchError> {
        let done = self.node.wait_for_task(SET_POSITION, task).await?;
        check_count(SET_POSITION, 1, done.indexed_documents)
    }

    async fn swap(&self) -> Result<(), SearchError> {
        // Both indexes have to exist. An empty index without a state is not searched.
        for uid in [self.node.uid(Target::Live), self.node.state_uid(Target::Live)] {
            match self.create_index(uid).await {
                Err(SearchError::TaskFailed { code, .. }) if code == "index_already_exists" => {}
                created => created?,
            }
        }
        let pair = |uid: fn(&Node, Target) -> String| SwapIndexes {
            indexes: (uid(&self.node, Target::Live), uid(&self.node, Target::Rebuild)),
            rename: None,
        };
        let task = self.node.client.swap_indexes(&[pair(Node::uid), pair(Node::state_uid)]).await;
        self.wait_for_task("swap indexes", task).await
    }

    async fn create_index(&self, uid: String) -> Result<(), SearchError> {
        let task = self.node.client.create_index(uid, Some(PRIMARY_KEY)).await;
        self.wait_for_task("create an index", task).await
    }

    /// Deletes an index, its position first.
    async fn delete_target(&self, target: Target) -> Result<(), SearchError> {
        for uid in [self.node.state_uid(target), self.node.uid(target)] {
            let task = self.node.client.delete_index(uid).await;
            match self.wait_for_task("delete an index", task).await {
                Err(error) if error.is_index_not_found() => {}
                deleted => deleted?,
            }
        }
        Ok(())
    }

    async fn set_settings(&self, target: Target) -> Result<(), SearchError> {
        let task = self.node.index(target).set_settings(&settings::chartsets()).await;
        self.wait_for_task("set the settings of an index", task).await
    }

    async fn wait_for_task(
        &self,
        operation: &'static str,
        task: Result<TaskInfo, SdkError>,
    ) -> Result<(), SearchError> {
        let task = task.map_err(SearchError::from_sdk(operation))?;
        self.node.wait_for_task(operation, &task).await.map(drop)
    }

    /// The documents with these ids that are in the index.
    async fn read_documents(
        &self,
        target: Target,
        ids: &[ChartsetId],
    ) -> Result<HashMap<ChartsetId, Value>, SearchError> {
        let index = self.node.index(target);
        let mut documents = HashMap::with_capacity(ids.len());
        for ids in ids.chunks(DOCUMENTS_PER_REQUEST) {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let mut query = DocumentsQuery::new(&index);
            query.with_ids(ids.iter().map(String::as_str)).with_limit(ids.len());
            for document in self.fetch::<Value>(&query).await? {
                let id = DocumentId::deserialize(&document);
                let DocumentId { id } = id.map_err(|error| SearchError::invalid_response(READ, error))?;
                documents.insert(id, document);
            }
        }
        Ok(documents)
    }

    async fn fetch<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        query: &DocumentsQuery<'_, Transport>,
    ) -> Result<Vec<T>, SearchError> {
        let fetched: DocumentsResults<T> = query.execute().await.map_err(SearchError::from_sdk(READ))?;
        Ok(fetched.results)
    }
}

/// Timeout of a request that adds, replaces or deletes something. The node only enqueues a task meanwhile.
const WRITE_TIMEOUT: Duration = Duration::from_mins(2);
const READ: &str = "read documents";
const SET_POSITION: &str = "set the position of an index";
const DELETE: &str = "delete documents";
