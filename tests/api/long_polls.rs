//! `GET /api/changes` with `wait` (docs/api.md, "Changes").

use std::time::Instant;

use serde_json::json;

use super::*;

/// Much shorter than the longest wait.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An index with a chart, and a service with these settings.
async fn index(variables: &[(&str, &str)]) -> (TestDatabase, Service, u64) {
    let (database, library) = (TestDatabase::migrated().await, Library::new());
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let service =
        Service::start_with(database.url(), &ServiceOptions { variables, ..ServiceOptions::default() });
    let end = service.client().get("/api/changes").await.json()["next"].as_u64().unwrap();
    (database, service, end)
}

/// Requests the changes after this one, and waits for 60 seconds.
fn wait_after(service: &Service, sequence: u64) -> impl Future<Output = Response> + Send + 'static {
    let (client, path) = (service.client(), format!("/api/changes?after={sequence}&wait=60"));
    async move { client.get(&path).await }
}

/// Waits until this number of requests wait.
async fn wait_until_waiting(service: &Service, number: u32) {
    let private = service.private_client();
    let is_shown = async || {
        let waiting = private.metric("chart_index_long_polls_active").await;
        (waiting == Some(number.into())).then_some(())
    };
    within(TIMEOUT, is_shown).await;
}

/// The seconds that all requests of the feed have taken.
async fn total_duration(service: &Service) -> f64 {
    let metrics = service.private_client().metrics().await;
    let is_of_feed = |line: &&str| {
        line.starts_with("http_server_request_duration_seconds_sum")
            && line.contains("http_route=\"/api/changes\"")
    };
    let sums = metrics.lines().filter(is_of_feed).map(|line| line.rsplit(' ').next().unwrap());
    sums.map(|sum| sum.parse::<f64>().unwrap()).sum()
}

fn assert_empty(response: &Response, end: u64) {
    let page = response.json();
    let expected = json!({"items": [], "next": end, "hasMore": false, "lineage": page["lineage"]});
    assert_eq!(page, expected);
    assert_eq!(response.header("cache-control"), "no-store", "a cache would end the next wait");
}

#[tokio::test]
async fn change_ends_every_wait() {
    let (database, service, end) = index(&[]).await;
    let waits = [(); 3].map(|()| tokio::spawn(wait_after(&service, end)));
    wait_until_waiting(&service, 3).await;
    let library = Library::new();
    library.osu("alpha/2 two/a.osu", ChartSpec { set_id: 2, keys: 5, ..ChartSpec::default() });
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    for wait in waits {
        let response = tokio::time::timeout(TIMEOUT, wait).await.expect("the wait ends").unwrap();
        assert_eq!(response.header("cache-control"), "public, max-age=10");
        assert_eq!(response.json()["items"][0]["sequence"], end + 1);
    }
    wait_until_waiting(&service, 0).await;
}

#[tokio::test]
async fn wait_ends_with_an_empty_page() {
    let (_database, service, end) = index(&[]).await;
    let (client, start) = (service.client(), Instant::now());
    let response = client.get(&format!("/api/changes?after={end}&wait=2")).await;
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_empty(&response, end);
    let seconds = total_duration(&service).await;
    assert!(seconds < 2.0, "a wait is no part of the duration: {seconds}");
    let response = client.get("/api/changes?after=0&wait=60").await;
    assert_eq!(response.json()["next"], end, "there are changes to send at once");
}

/// One request of the group may be in flight, and one may wait.
#[tokio::test]
async fn waiting_requests_are_limited_and_not_in_flight() {
    let limits = [("MAX_LONG_POLLS", "1"), ("MAX_REQUESTS_IN_FLIGHT", "1"), ("RATE_LIMIT_FEED", "4")];
    let (_database, service, end) = index(&limits).await;
    let waiting = tokio::spawn(wait_after(&service, end));
    wait_until_waiting(&service, 1).await;
    assert_eq!(service.client().get("/api/changes").await.status, 200);
    assert_empty(&wait_after(&service, end).await, end);
    assert_eq!(wait_after(&service, end).await.status, 429, "a request counts before it waits");
    waiting.abort();
}

#[tokio::test]
async fn half_of_the_connections_are_left_to_other_requests() {
    let (_database, service, end) = index(&[("MAX_CONNECTIONS", "8")]).await;
    let waits = [(); 4].map(|()| tokio::spawn(wait_after(&service, end)));
    wait_until_waiting(&service, 4).await;
    assert_empty(&wait_after(&service, end).await, end);
    waits.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn shutdown_ends_waits() {
    let (_database, mut service, end) = index(&[("DRAIN_DELAY_MS", "1000")]).await;
    let waiting = tokio::spawn(wait_after(&service, end));
    wait_until_waiting(&service, 1).await;
    service.terminate();
    let response = waiting.await.unwrap();
    assert_empty(&response, end);
    assert_eq!(response.header("connection"), "close");
    assert_eq!(service.wait(), Some(0));
}
