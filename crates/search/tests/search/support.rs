//! Meilisearch servers and engines for the tests.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use chart_index_domain::search::{
    CatalogueChanges, ChartsetPage, IndexedChartset, SearchIndex, SearchQuery, UnappliedChanges,
};
use chart_index_domain::{Chartset, ChartsetId, KeyCount, Keywords, Origin, Position, ReadError};
use chart_index_search::{
    ApiKey, IndexBatch, IndexWriter, MeilisearchEngine, NodeConfig, NodeUrl, SearchConfig, SearchError,
    Target,
};
use chart_index_tests::PrivateMeilisearch;
use serde_json::Value;

/// A Meilisearch server: that of `MEILISEARCH_URL`, or a private one.
pub(crate) struct Server {
    /// The server, with an index for this test alone.
    pub(crate) config: NodeConfig,
    _private: Option<PrivateMeilisearch>,
}

impl Server {
    /// The configured server, or a new private one.
    pub(crate) fn find() -> Self {
        if let Ok(url) = std::env::var("MEILISEARCH_URL") {
            let key = std::env::var("MEILISEARCH_API_KEY").ok().map(|key| key.parse().unwrap());
            return Self { config: node_config(&url, key), _private: None };
        }
        let private = PrivateMeilisearch::start();
        Self { config: config(&private), _private: Some(private) }
    }

    /// Deletes the indexes of the test.
    pub(crate) async fn close(self) {
        let client = chart_index_tests::http_client_builder().build().unwrap();
        for suffix in ["", "_state", "_rebuild", "_rebuild_state"] {
            let url = format!("{}/indexes/{}{suffix}", self.config.url, self.config.index_uid());
            let mut request = client.delete(url);
            if let Ok(key) = std::env::var("MEILISEARCH_API_KEY") {
                request = request.header("Authorization", format!("Bearer {key}"));
            }
            request.send().await.unwrap();
        }
    }
}

/// A private server, with an index for this test alone.
pub(crate) fn config(server: &PrivateMeilisearch) -> NodeConfig {
    node_config(&server.url(), None)
}

fn node_config(url: &str, key: Option<ApiKey>) -> NodeConfig {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut config = NodeConfig::new(url.parse::<NodeUrl>().unwrap(), key);
    config.index = format!("test_{}_{number}", std::process::id());
    config
}

/// The server that [`Changes`] is the feed of.
pub(crate) const SERVER: Origin = Origin(7);

/// A position that [`SERVER`] numbered.
pub(crate) const fn position(sequence: u64) -> Position {
    Position { origin: SERVER, sequence }
}

/// A change feed in which every position below a bound lacks an old change. It can fail or go silent.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// A node at this position has applied all changes.
    pub(crate) complete_from: AtomicU64,
    /// The age of the oldest change that other nodes lack; 0 for the beginning of Unix time.
    pub(crate) oldest_age_ms: AtomicU64,
    /// Whether every call fails.
    pub(crate) unavailable: AtomicBool,
    /// Whether calls never return.
    pub(crate) silent: AtomicBool,
    /// The number of calls that never return.
    pub(crate) pending_calls: AtomicU64,
    pub(crate) calls: AtomicU64,
}

impl Changes {
    pub(crate) fn complete_from(sequence: u64) -> Arc<Self> {
        Arc::new(Self { complete_from: sequence.into(), ..Self::default() })
    }

    /// Waits for a call that began after this one.
    pub(crate) async fn next_call(&self) {
        let before = self.calls.load(Ordering::SeqCst);
        until("the changes are read again", async || self.calls.load(Ordering::SeqCst) > before + 1).await;
    }
}

#[async_trait]
impl CatalogueChanges for Changes {
    async fn unapplied(&self, position: Position) -> Result<UnappliedChanges, ReadError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.silent.load(Ordering::SeqCst) {
            self.pending_calls.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        if self.unavailable.load(Ordering::SeqCst) {
            return Err(ReadError::Unavailable { operation: "test", source: "test".into() });
        }
        let count = self.complete_from.load(Ordering::SeqCst).saturating_sub(position.sequence);
        let asked_ms = now_ms();
        let oldest_ms = (count > 0).then(|| match self.oldest_age_ms.load(Ordering::SeqCst) {
            0 => 0,
            age_ms => asked_ms - i64::try_from(age_ms).unwrap(),
        });
        Ok(UnappliedChanges { origin: SERVER, oldest_ms, asked_ms, count })
    }
}

fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(elapsed.as_millis()).unwrap()
}

/// An engine with a short probe interval.
pub(crate) async fn engine(nodes: &[&NodeConfig]) -> MeilisearchEngine {
    engine_with(nodes, Arc::default(), Duration::from_secs(5)).await
}

/// An engine with a short probe interval, a change feed and a search timeout.
pub(crate) async fn engine_with(
    nodes: &[&NodeConfig],
    changes: Arc<Changes>,
    search_timeout: Duration,
) -> MeilisearchEngine {
    let mut config = SearchConfig::new(nodes.iter().map(|&node| node.clone()).collect());
    config.search_timeout = search_timeout;
    config.probe_interval = Duration::from_millis(50);
    MeilisearchEngine::connect(config, changes).await.unwrap()
}

/// An engine with a long timeout, which reads pages from offset 100 on from the end.
pub(crate) async fn slow_engine(node: &NodeConfig) -> MeilisearchEngine {
    let mut config = SearchConfig::new(vec![node.clone()]);
    config.search_timeout = Duration::from_secs(10);
    config.reverse_from_offset = 100;
    MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap()
}

/// Builds a live index of the chartsets.
pub(crate) async fn fill(config: &NodeConfig, sets: &[IndexedChartset], sequence: u64) -> IndexWriter {
    let writer = IndexWriter::new(config).unwrap();
    rebuild(&writer, sets, position(sequence)).await;
    writer
}

pub(crate) async fn rebuild(writer: &IndexWriter, sets: &[IndexedChartset], position: Position) {
    writer.begin_rebuild().await.unwrap();
    for put in sets.chunks(10_000) {
        writer.apply(Target::Rebuild, &IndexBatch { put, delete: &[] }).await.unwrap();
    }
    writer.set_position(Target::Rebuild, position).await.unwrap();
    writer.finish_rebuild().await.unwrap();
}

/// The first page of the whole catalogue, most recently updated first.
pub(crate) async fn first_page(engine: &MeilisearchEngine) -> Result<ChartsetPage, ReadError> {
    engine.search(&SearchQuery::default()).await
}

/// Why no node returned a result.
pub(crate) fn cause<T: Debug>(result: Result<T, ReadError>) -> SearchError {
    match result {
        Err(ReadError::Unavailable { source, .. }) => *source.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(condition: &str, holds: impl Fn() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait)
        .await
        .unwrap_or_else(|_| panic!("timed out: {condition}"));
}

pub(crate) fn id(number: u64) -> ChartsetId {
    ChartsetId::from_bytes(number.to_be_bytes())
}

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
    IndexedChartset {
        chartset,
        charts: Vec::new(),
        bpm_main_max: 150.0,
        keywords,
        updated_at_ms: i64::try_from(number).unwrap(),
    }
}

pub(crate) fn numbered(count: u64) -> Vec<IndexedChartset> {
    (1..=count).map(|number| titled(number, &format!("Title {number}"))).collect()
}

pub(crate) fn ids(page: &ChartsetPage) -> Vec<u64> {
    strings(page, "id").map(|id| u64::from_str_radix(&id, 16).unwrap()).collect()
}

pub(crate) fn titles(page: &ChartsetPage) -> Vec<String> {
    strings(page, "title").collect()
}

fn strings(page: &ChartsetPage, field: &str) -> impl Iterator<Item = String> {
    page.items.iter().map(move |item| {
        let item: Value = serde_json::from_str(item.as_str()).unwrap();
        item[field].as_str().unwrap().to_owned()
    })
}
