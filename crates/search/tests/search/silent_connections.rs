//! Connections to a node that go silent: no response, and no sign that there will be none.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use chart_index_domain::search::{Generation, SearchIndex};
use chart_index_search::{MeilisearchEngine, NodeConfig, SearchConfig, SearchError};
use futures_util::future::join_all;

use crate::contract::finding_query;
use crate::exchanges::{recorded, serve_repeatedly};
use crate::proxy::Proxy;
use crate::support::{Changes, until};

/// "It is used again within 10 s of coming back."
const PROMISED: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_millis(500);
/// Searches that are in flight at once, each on a connection of its own.
const CONNECTIONS: usize = 32;

/// An engine over nodes, quick to notice what becomes of them.
async fn engine(urls: &[&str], changes: &Arc<Changes>) -> MeilisearchEngine {
    let nodes = urls.iter().map(|url| NodeConfig::new(url.parse().unwrap(), None)).collect();
    let mut config = SearchConfig::new(nodes);
    config.search_timeout = DEADLINE;
    config.probe_interval = Duration::from_millis(100);
    config.max_concurrent_searches = NonZeroUsize::new(CONNECTIONS).unwrap();
    MeilisearchEngine::connect(config, Arc::clone(changes) as _).await.unwrap()
}

async fn answers(engine: &MeilisearchEngine) -> bool {
    engine.search(&finding_query(), Generation::default()).await.is_ok()
}

/// Whether only a probe brings the node back: it is not searched.
async fn is_out_of_use(engine: &MeilisearchEngine) -> bool {
    match engine.search(&finding_query(), Generation::default()).await {
        Err(ReadError::Unavailable { source, .. }) => {
            matches!(source.downcast_ref(), Some(SearchError::NoUsableNode))
        }
        _ => false,
    }
}

#[tokio::test]
async fn silent_connections_are_replaced_all_at_once() {
    let proxy = Proxy::start(&serve_repeatedly(recorded("search")).await).await;
    let engine = engine(&[&proxy.url], &Arc::default()).await;
    let at_once = join_all((0..CONNECTIONS).map(|_| answers(&engine))).await;
    assert!(at_once.iter().all(|answered| *answered));
    assert!(proxy.accepted() > CONNECTIONS / 2, "{} connections", proxy.accepted());
    proxy.silence_open_connections();
    let start = Instant::now();
    until("the node is used over new connections", async || answers(&engine).await).await;
    // One by one they would take half a second each.
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    for _ in 0..CONNECTIONS {
        assert!(answers(&engine).await, "no silent connection is left");
    }
}

#[tokio::test]
async fn a_silent_node_is_replaced_and_used_again_when_it_is_back() {
    let (exchanges, other) = (recorded("search"), recorded("search"));
    let proxies = [
        Proxy::start(&serve_repeatedly(exchanges).await).await,
        Proxy::start(&serve_repeatedly(other).await).await,
    ];
    let engine = engine(&proxies.each_ref().map(|proxy| proxy.url.as_str()), &Arc::default()).await;
    for silent in &proxies {
        silent.silence_all();
        let start = Instant::now();
        until("the other node answers", async || answers(&engine).await).await;
        assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
        for _ in 0..5 {
            assert!(answers(&engine).await, "the silent node is passed over");
        }
        let before = silent.accepted();
        silent.pass_on();
        until("it is asked again", async || silent.accepted() > before).await;
    }
    // Both are back: whichever is favoured, the other may go.
    let start = Instant::now();
    for silent in &proxies {
        silent.silence_all();
        until("the node that came back answers", async || answers(&engine).await).await;
        silent.pass_on();
    }
    assert!(start.elapsed() < 2 * PROMISED, "{:?}", start.elapsed());
}

/// The record of changes lies in PostgreSQL, whose connections may go silent as well.
#[tokio::test]
async fn a_record_of_changes_that_goes_silent_holds_up_no_node() {
    let proxy = Proxy::start(&serve_repeatedly(recorded("search")).await).await;
    let changes = Arc::new(Changes::default());
    let engine = engine(&[&proxy.url], &changes).await;
    changes.silent.store(true, Ordering::SeqCst);
    until("the record is asked", async || changes.unanswered.load(Ordering::SeqCst) > 0).await;
    proxy.silence_all();
    until("the node is out of use", async || is_out_of_use(&engine).await).await;
    proxy.pass_on();
    let start = Instant::now();
    until("the node is used again", async || answers(&engine).await).await;
    assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
}
