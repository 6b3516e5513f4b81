//! Servers to write to, and engines over them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chart_index_domain::search::{
    CatalogueChanges, ChartsetPage, Checkpoint, Generation, IndexedChartset, RecordedCheckpoint, SearchIndex,
    SearchQuery,
};
use chart_index_domain::{Chartset, ChartsetId, KeyCount, Keywords, ReadError};
use chart_index_search::{
    ApiKey, Batch, IndexWriter, MeilisearchEngine, NodeConfig, NodeUrl, SearchConfig, Target,
};
use chart_index_tests::PrivateMeilisearch;
use serde_json::Value;

/// A Meilisearch server: the one of `MEILISEARCH_URL`, or a private one.
pub(crate) struct Server {
    /// How to reach an index of the test's own.
    pub(crate) config: NodeConfig,
    _private: Option<PrivateMeilisearch>,
}

impl Server {
    /// The server to test with.
    pub(crate) fn find() -> Self {
        if let Ok(url) = std::env::var("MEILISEARCH_URL") {
            let key = std::env::var("MEILISEARCH_API_KEY").ok().map(ApiKey::from);
            return Self { config: config_of(&url, key), _private: None };
        }
        let private = PrivateMeilisearch::start();
        Self { config: config(&private), _private: Some(private) }
    }

    /// Deletes the indexes of the test. On a private server they go with it.
    pub(crate) async fn close(self) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        for suffix in ["", "_state", "_rebuild", "_rebuild_state"] {
            let url = format!("{}/indexes/{}{suffix}", self.config.url, self.config.index);
            let mut request = client.delete(url);
            if let Ok(key) = std::env::var("MEILISEARCH_API_KEY") {
                request = request.header("Authorization", format!("Bearer {key}"));
            }
            request.send().await.unwrap();
        }
    }
}

/// How to reach an index of the test's own on a private server.
pub(crate) fn config(server: &PrivateMeilisearch) -> NodeConfig {
    config_of(&server.url(), None)
}

fn config_of(url: &str, key: Option<ApiKey>) -> NodeConfig {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut config = NodeConfig::new(url.parse::<NodeUrl>().unwrap(), key);
    config.index = format!("test_{}_{number}", std::process::id());
    config
}

/// A record of changes: checkpoints below a bound lack one, made long ago. It may be away.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) complete_from: AtomicU64,
    pub(crate) away: AtomicBool,
    /// Whether it never answers.
    pub(crate) silent: AtomicBool,
    /// How many of its answers are waited for in vain.
    pub(crate) unanswered: AtomicU64,
    /// How often it was asked.
    pub(crate) asked: AtomicU64,
}

impl Changes {
    pub(crate) fn complete_from(checkpoint: u64) -> Arc<Self> {
        Arc::new(Self { complete_from: checkpoint.into(), ..Self::default() })
    }

    /// Waits until it was asked once more, from beginning to end.
    pub(crate) async fn asked_again(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        until("it is asked again", async || self.asked.load(Ordering::SeqCst) > before + 1).await;
    }
}

#[async_trait]
impl CatalogueChanges for Changes {
    async fn oldest_unapplied_ms(&self, recorded: RecordedCheckpoint) -> Result<Option<i64>, ReadError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.silent.load(Ordering::SeqCst) {
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::SeqCst) {
            return Err(ReadError::Unavailable { operation: "test", source: "away".into() });
        }
        Ok((recorded.checkpoint.0 < self.complete_from.load(Ordering::SeqCst)).then_some(1_000))
    }
}

/// An engine over those nodes that notices quickly what becomes of them.
pub(crate) async fn engine(nodes: &[&NodeConfig]) -> MeilisearchEngine {
    engine_with(nodes, Arc::default(), Duration::from_secs(5)).await
}

/// An engine with changes to lag behind and a deadline.
pub(crate) async fn engine_with(
    nodes: &[&NodeConfig],
    changes: Arc<Changes>,
    deadline: Duration,
) -> MeilisearchEngine {
    let mut config = SearchConfig::new(nodes.iter().map(|&node| node.clone()).collect());
    config.search_timeout = deadline;
    config.probe_interval = Duration::from_millis(50);
    MeilisearchEngine::connect(config, changes).await.unwrap()
}

/// An engine that is patient, and takes pages for deep that are not.
pub(crate) async fn patient_engine(node: &NodeConfig) -> MeilisearchEngine {
    let mut config = SearchConfig::new(vec![node.clone()]);
    config.search_timeout = Duration::from_secs(10);
    config.reverse_from_offset = 100;
    MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap()
}

/// Fills a new live index with the sets.
pub(crate) async fn fill(config: &NodeConfig, sets: &[IndexedChartset], checkpoint: u64) -> IndexWriter {
    let writer = IndexWriter::new(config).unwrap();
    rebuild(&writer, sets, checkpoint).await;
    writer
}

/// Rebuilds an index.
pub(crate) async fn rebuild(writer: &IndexWriter, sets: &[IndexedChartset], checkpoint: u64) {
    writer.begin_rebuild().await.unwrap();
    for put in sets.chunks(10_000) {
        writer.apply(Target::Rebuild, &Batch { put, delete: &[] }).await.unwrap();
    }
    writer.set_checkpoint(Target::Rebuild, Checkpoint(checkpoint)).await.unwrap();
    writer.finish_rebuild().await.unwrap();
}

/// The page of the whole catalogue, newest first.
pub(crate) async fn first_page(engine: &MeilisearchEngine) -> Result<ChartsetPage, ReadError> {
    engine.search(&SearchQuery::default(), Generation::default()).await
}

/// Waits until the engine is as it should be.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn id(number: u64) -> ChartsetId {
    ChartsetId::from_bytes(number.to_be_bytes())
}

/// The set with that number and title.
pub(crate) fn titled(number: u64, title: &str) -> IndexedChartset {
    let chartset = Chartset {
        id: id(number),
        title: title.into(),
        artist: format!("Artist {number}"),
        creator: format!("Creator {number}"),
        source: None,
        keys: vec![KeyCount::try_from(4).unwrap()],
        bpm_min: 100.0,
        bpm_max: 180.125,
        length_min_ms: 60_000,
        length_max_ms: 90_000,
        density_max: 12.5,
        chart_count: 1,
    };
    let keywords = Keywords::default();
    IndexedChartset { chartset, keywords, updated_at_ms: i64::try_from(number).unwrap() }
}

/// So many sets.
pub(crate) fn numbered(count: u64) -> Vec<IndexedChartset> {
    (1..=count).map(|number| titled(number, &format!("Title {number}"))).collect()
}

/// The numbers of the sets on a page.
pub(crate) fn ids(page: &ChartsetPage) -> Vec<u64> {
    strings(page, "id").map(|id| u64::from_str_radix(&id, 16).unwrap()).collect()
}

/// The titles of the sets on a page.
pub(crate) fn titles(page: &ChartsetPage) -> Vec<String> {
    strings(page, "title").collect()
}

fn strings(page: &ChartsetPage, field: &str) -> impl Iterator<Item = String> {
    page.items.iter().map(move |item| {
        let item: Value = serde_json::from_str(item.as_str()).unwrap();
        item[field].as_str().unwrap().to_owned()
    })
}
