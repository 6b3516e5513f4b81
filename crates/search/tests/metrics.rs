//! The metrics and spans of the Meilisearch engine.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails if its setup does")]

#[path = "search/recording.rs"]
#[expect(dead_code, reason = "the tests of the engine record exchanges, this one serves them")]
mod recording;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chart_index_domain::search::{
    CatalogueChanges, Direction, PageRequest, SearchIndex, SearchQuery, Sort, UnappliedChanges,
};
use chart_index_domain::{Origin, Position, ReadError};
use chart_index_search::{MeilisearchEngine, NodeConfig, SearchConfig};
use chart_index_tests::{RecordedTelemetry, within};
use opentelemetry::trace::SpanKind;
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tracing::Instrument;

use crate::recording::{recorded, serve_repeatedly};

/// A catalogue with three changes that no index has, the oldest of ten seconds ago.
struct ThreeChanges;

#[async_trait]
impl CatalogueChanges for ThreeChanges {
    async fn unapplied(&self, _: Position) -> Result<UnappliedChanges, ReadError> {
        Ok(UnappliedChanges { origin: Origin(7), oldest_ms: Some(1), asked_ms: 10_001, count: 3 })
    }
}

/// An engine with nodes at these URLs, which it has probed once.
async fn engine(urls: &[&str]) -> MeilisearchEngine {
    let nodes = urls.iter().map(|url| NodeConfig::new(url.parse().unwrap(), None)).collect();
    let config = SearchConfig { probe_interval: Duration::from_hours(1), ..SearchConfig::new(nodes) };
    MeilisearchEngine::connect(config, Arc::new(ThreeChanges)).await.unwrap()
}

fn query() -> SearchQuery {
    let page = PageRequest::clamped(2, 3);
    SearchQuery { sort: Sort::Title, direction: Direction::Descending, page, ..SearchQuery::default() }
}

/// The number of operations with this name, with this type of error or any result.
fn operations(telemetry: &RecordedTelemetry, name: &str, error: Option<&str>) -> Option<i64> {
    let mut labels = vec![("db_system_name", "meilisearch"), ("db_operation_name", name)];
    labels.extend(error.map(|error| ("error_type", error)));
    telemetry.value("db_client_operation_duration_seconds", &labels)
}

#[tokio::test]
async fn request_has_a_duration_and_a_client_span() {
    let telemetry = RecordedTelemetry::start();
    let engine = engine(&[&serve_repeatedly(recorded("search")).await]).await;
    assert_eq!(operations(&telemetry, "probe", None), Some(2), "reads features and state");
    let request = tracing::info_span!("request");
    let page = engine.search(&query()).instrument(request.clone()).await.unwrap();
    assert_eq!(page.total, 7);
    assert_eq!(operations(&telemetry, "search", None), Some(1));
    drop(request);
    let spans = telemetry.spans();
    let [span, request] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*span.name, &span.kind, span.parent), ("search", &SpanKind::Client, request.id));
    assert_eq!(span.attributes["db.system.name"], "meilisearch");
    assert_eq!(span.attributes["db.operation.name"], "search");

    assert_eq!(operations(&telemetry, "search", Some("timeout")), Some(0));
    let query = query();
    let search = timeout(Duration::from_millis(1), engine.search(&query));
    assert!(search.await.is_err(), "the response takes longer");
    assert_eq!(operations(&telemetry, "search", Some("timeout")), Some(1));
}

#[tokio::test]
async fn nodes_are_observed_while_the_engine_exists() {
    let telemetry = RecordedTelemetry::start();
    let available = serve_repeatedly(recorded("search")).await;
    // Bound and not listening: connections are refused.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let unavailable = format!("http://{}/path", socket.local_addr().unwrap());
    let engine = engine(&[&available, &unavailable]).await;
    let node = |metric: &str, url: &str| {
        let address = url.trim_start_matches("http://").trim_end_matches("/path");
        let metric = format!("chart_index_search_node_{metric}");
        telemetry.value(&metric, &[("chart_index_search_node", address)])
    };
    assert_eq!((node("usable", &available), node("usable", &unavailable)), (Some(1), Some(0)));
    assert_eq!((node("pending_changes", &available), node("pending_changes", &unavailable)), (Some(3), None));
    assert!((10..30).contains(&node("lag_seconds", &available).unwrap()));
    assert_eq!(node("lag_seconds", &unavailable), None, "not known");
    assert_eq!(operations(&telemetry, "probe", Some("unavailable")), Some(1));
    drop(engine);
    // Its probes end in the background.
    within(Duration::from_secs(20), async || node("usable", &available).is_none().then_some(())).await;
}
