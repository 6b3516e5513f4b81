//! Connections to a node that go silent: no response and no error.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use chart_index_domain::search::SearchIndex;
use chart_index_search::{MeilisearchEngine, NodeConfig, SearchConfig, SearchError};
use chart_index_tests::Proxy;
use futures_util::future::join_all;

use crate::recorded_exchanges::query;
use crate::recording::{recorded, serve_repeatedly};
use crate::support::{Changes, until};

/// A node that recovers is used again within this time.
const RECOVERY: Duration = Duration::from_secs(10);
const SEARCH_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of concurrent searches, each on its own connection.
const CONNECTIONS: usize = 32;

/// An engine with short probe intervals and timeouts.
async fn engine(urls: &[&str], changes: &Arc<Changes>) -> MeilisearchEngine {
    let nodes = urls.iter().map(|url| NodeConfig::new(url.parse().unwrap(), None)).collect();
    let mut config = SearchConfig::new(nodes);
    config.search_timeout = SEARCH_TIMEOUT;
    config.probe_interval = Duration::from_millis(100);
    config.max_concurrent_searches = NonZeroUsize::new(CONNECTIONS).unwrap();
    MeilisearchEngine::connect(config, Arc::clone(changes) as _).await.unwrap()
}

async fn succeeds(engine: &MeilisearchEngine) -> bool {
    engine.search(&query()).await.is_ok()
}

/// Whether the node is not searched until a probe succeeds.
async fn is_out_of_use(engine: &MeilisearchEngine) -> bool {
    match engine.search(&query()).await {
        Err(ReadError::Unavailable { source, .. }) => {
            matches!(source.downcast_ref(), Some(SearchError::NoUsableNode))
        }
        _ => false,
    }
}

#[tokio::test]
async fn silent_connections_are_replaced_together() {
    let proxy = Proxy::start(&serve_repeatedly(recorded("search")).await).await;
    let engine = engine(&[proxy.url()], &Arc::default()).await;
    let searches = join_all((0..CONNECTIONS).map(|_| succeeds(&engine))).await;
    assert!(searches.iter().all(|succeeded| *succeeded));
    assert!(proxy.connections() > CONNECTIONS / 2, "{} connections", proxy.connections());
    proxy.silence_open_connections();
    let start = Instant::now();
    until("the node is used over new connections", async || succeeds(&engine).await).await;
    // Replaced one by one, each would cost a timeout of half a second.
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    for _ in 0..CONNECTIONS {
        assert!(succeeds(&engine).await, "no silent connection is left");
    }
}

#[tokio::test]
async fn silent_node_is_skipped_until_it_recovers() {
    let (exchanges, other) = (recorded("search"), recorded("search"));
    let proxies = [
        Proxy::start(&serve_repeatedly(exchanges).await).await,
        Proxy::start(&serve_repeatedly(other).await).await,
    ];
    let engine = engine(&proxies.each_ref().map(Proxy::url), &Arc::default()).await;
    for silent in &proxies {
        silent.silence_all();
        let start = Instant::now();
        until("the other node is searched", async || succeeds(&engine).await).await;
        assert!(start.elapsed() < RECOVERY, "{:?}", start.elapsed());
        for _ in 0..5 {
            assert!(succeeds(&engine).await, "the silent node is skipped");
        }
        let before = silent.connections();
        silent.accept_new_connections();
        until("it is probed again", async || silent.connections() > before).await;
    }
    // Both have recovered: either one is enough.
    let start = Instant::now();
    for silent in &proxies {
        silent.silence_all();
        until("the node that recovered is searched", async || succeeds(&engine).await).await;
        silent.accept_new_connections();
    }
    assert!(start.elapsed() < 2 * RECOVERY, "{:?}", start.elapsed());
}

/// The changes are read from PostgreSQL, whose connections may go silent as well.
#[tokio::test]
async fn silent_change_feed_does_not_block_probes() {
    let proxy = Proxy::start(&serve_repeatedly(recorded("search")).await).await;
    let changes = Arc::new(Changes::default());
    let engine = engine(&[proxy.url()], &changes).await;
    changes.silent.store(true, Ordering::SeqCst);
    until("the changes are read", async || changes.pending_calls.load(Ordering::SeqCst) > 0).await;
    proxy.silence_all();
    until("the node is out of use", async || is_out_of_use(&engine).await).await;
    proxy.accept_new_connections();
    let start = Instant::now();
    until("the node is used again", async || succeeds(&engine).await).await;
    assert!(start.elapsed() < RECOVERY, "{:?}", start.elapsed());
}
