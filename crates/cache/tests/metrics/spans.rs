//! Spans of fills, and their links.

use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{Cache, CacheConfig, CachedResponse};
use chart_index_domain::ReadError;
use chart_index_redis::testing::RedisServer;
use chart_index_tests::{RecordedSpan, RecordedTelemetry};
use tokio::sync::Notify;
use tracing::{Instrument, Span, debug_span, info_span};

use crate::memory_only;
use crate::support::{Replica, Store, eventually, key, version};

/// A fill that waits for `release`, with a span of its own like those of the store.
async fn read_store(release: Arc<Notify>) -> Result<CachedResponse, ReadError> {
    let read = async move { release.notified().await };
    read.instrument(debug_span!("store")).await;
    Ok(version(0))
}

/// A request for key 1 in a span.
fn request(cache: &Arc<Cache>, release: &Arc<Notify>, span: Span) -> tokio::task::JoinHandle<CachedResponse> {
    let (cache, release) = (cache.clone(), Arc::clone(release));
    let read = async move { cache.get(key(1), || read_store(release)).await.unwrap() };
    tokio::spawn(read.instrument(span))
}

/// The spans with these names, which must be all.
fn named<const COUNT: usize>(telemetry: &RecordedTelemetry, names: [&str; COUNT]) -> [RecordedSpan; COUNT] {
    let spans = telemetry.spans();
    assert_eq!(spans.len(), COUNT, "{spans:?}");
    names.map(|name| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name}")).clone()
    })
}

#[tokio::test]
async fn fill_is_a_child_and_joined_requests_link_to_it() {
    let telemetry = RecordedTelemetry::start();
    let (cache, release) = (memory_only(CacheConfig::default()), Arc::new(Notify::new()));
    let first = request(&cache, &release, info_span!("first"));
    let second = request(&cache, &release, info_span!("second"));
    let unsampled = request(&cache, &release, Span::none());
    tokio::task::yield_now().await;
    release.notify_one();
    for request in [first, second, unsampled] {
        assert_eq!(request.await.unwrap(), version(0));
    }
    let [first, second, fill, store] = named(&telemetry, ["first", "second", "fill", "store"]);
    assert_eq!((fill.parent, fill.trace), (first.id, first.trace));
    assert_eq!(store.parent, fill.id);
    assert_eq!(fill.attributes["chart_index.cache.group"], "lookup");
    assert_eq!(fill.attributes["chart_index.outcome"], "found");
    assert_eq!(second.links, [fill.id]);
    assert_ne!(second.trace, fill.trace);
    assert!(first.links.is_empty() && fill.links.is_empty());
}

#[tokio::test]
async fn fill_reads_redis_and_the_store() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let release = Arc::new(Notify::new());
    release.notify_one();
    request(&replica.cache, &release, info_span!("request")).await.unwrap();
    let [request, fill, get, store] = named(&telemetry, ["request", "fill", "GET", "store"]);
    assert_eq!((fill.parent, get.parent, store.parent), (request.id, fill.id, fill.id));
}

#[tokio::test]
async fn fill_of_an_unsampled_request_has_no_span() {
    let telemetry = RecordedTelemetry::start();
    let (cache, release) = (memory_only(CacheConfig::default()), Arc::new(Notify::new()));
    let unsampled = request(&cache, &release, Span::none());
    let joined = request(&cache, &release, info_span!("joined"));
    tokio::task::yield_now().await;
    release.notify_one();
    unsampled.await.unwrap();
    joined.await.unwrap();
    let [joined] = named(&telemetry, ["joined"]);
    assert!(joined.links.is_empty());
}

#[tokio::test]
async fn span_of_a_fill_outlives_its_request() {
    let telemetry = RecordedTelemetry::start();
    let (cache, release) = (memory_only(CacheConfig::default()), Arc::new(Notify::new()));
    let dropped = request(&cache, &release, info_span!("dropped"));
    tokio::task::yield_now().await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let [dropped] = named(&telemetry, ["dropped"]);
    let joined = request(&cache, &release, info_span!("joined"));
    tokio::task::yield_now().await;
    release.notify_one();
    joined.await.unwrap();
    eventually(async || telemetry.spans().len() == 4).await;
    let [joined, fill, store, _] = named(&telemetry, ["joined", "fill", "store", "dropped"]);
    assert_eq!((fill.parent, store.parent), (dropped.id, fill.id));
    assert_eq!(joined.links, [fill.id]);
}

#[tokio::test]
async fn refresh_is_a_child_of_the_request_that_started_it() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    let release = Arc::new(Notify::new());
    replica.clock.advance(Duration::from_mins(12));
    let stale = request(&replica.cache, &release, info_span!("stale"));
    assert_eq!(stale.await.unwrap(), version(0));
    let [stale] = named(&telemetry, ["stale"]);
    release.notify_one();
    eventually(async || telemetry.spans().len() == 4).await;
    let [fill, get, read, _] = named(&telemetry, ["fill", "GET", "store", "stale"]);
    assert_eq!((fill.parent, get.parent, read.parent), (stale.id, fill.id, fill.id));
}
