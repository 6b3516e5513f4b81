//! Services, health endpoints and shutdown (docs/operations/monitoring.md, "Health").

use super::*;

#[tokio::test]
async fn health_endpoints_are_on_the_private_listener_only() {
    let index = Index::empty().await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(index.service.private_client().get(path).await.status, 200, "{path}");
        assert_eq!(index.get(path).await.status, 404, "{path}");
    }
    assert_eq!(index.service.private_client().get("/api/chartsets").await.status, 404);
}

/// Each follows the catalogue, apart from `bulk`, which has no cache.
#[tokio::test]
async fn replica_serves_the_selected_service() {
    let database = TestDatabase::migrated().await;
    let chart = format!("/api/charts/{}", "0".repeat(64));
    let paths = [("lookup", &*chart), ("browse", "/api/chartsets"), ("pages", "/"), ("bulk", "/api/changes")];
    let services = paths.map(|(service, _)| {
        let options = ServiceOptions { arguments: &["--services", service], ..ServiceOptions::default() };
        Service::start_with(database.url(), &options)
    });
    for (service, (name, _)) in services.iter().zip(paths) {
        for (of, path) in paths {
            let expected = if of == name { 200 } else { 404 };
            assert_eq!(service.client().get(path).await.status, expected, "{path} of {name}");
        }
    }
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    for service in &services[..3] {
        let knows_changes = async || {
            let changes = service.private_client().metric("chart_index_cache_recent_changes").await;
            (changes == Some(2.0)).then_some(())
        };
        within(CHANGE_TIMEOUT, knows_changes).await;
    }
}

/// Whether the metrics say that the replica is ready, and that it drains.
async fn state(private: &Client) -> [Option<f64>; 2] {
    [private.metric("chart_index_ready").await, private.metric("chart_index_draining").await]
}

/// A load balancer has until the end of the drain delay to notice.
#[tokio::test]
async fn draining_replica_is_unready_and_serves() {
    let delay = [("DRAIN_DELAY_MS", "600000")];
    let database = TestDatabase::migrated().await;
    let options = ServiceOptions { variables: &delay, ..ServiceOptions::default() };
    let mut service = Service::start_with(database.url(), &options);
    let (client, private) = (service.client(), service.private_client());
    assert_eq!(private.get("/readyz").await.status, 200);
    assert_eq!(client.get("/api/chartsets").await.header("connection"), "");
    assert_eq!(state(&private).await, [Some(1.0), Some(0.0)]);

    service.terminate();
    let unready = async || (private.get("/readyz").await.status == 503).then_some(());
    within(TIMEOUT, unready).await;
    assert_eq!(private.get("/livez").await.status, 200);
    assert_eq!(state(&private).await, [Some(0.0), Some(1.0)]);
    let draining = async || {
        let response = client.get("/api/chartsets").await;
        assert_eq!(response.status, 200);
        (response.header("connection") == "close").then_some(())
    };
    within(TIMEOUT, draining).await;
    service.terminate();
    assert_eq!(service.wait(), Some(128 + 15), "a second signal exits at once");
}

/// A second signal does not wait for requests in flight.
#[tokio::test]
async fn second_signal_exits_at_once() {
    let grace = [("SHUTDOWN_GRACE_MS", "600000"), ("HEADER_READ_TIMEOUT_MS", "600000")];
    let database = TestDatabase::create().await;
    let options = ServiceOptions { variables: &grace, ..ServiceOptions::default() };
    let mut service = Service::start_with(database.url(), &options);
    // The start of a request, which the server has received once it responds to the next client.
    let mut incomplete = std::net::TcpStream::connect(service.address()).unwrap();
    std::io::Write::write_all(&mut incomplete, b"GET /nowhere HTTP/1.1\r\nHost:").unwrap();
    assert_eq!(service.client().get("/nowhere").await.status, 404);
    service.terminate();
    within(TIMEOUT, async || service.log().iter().any(|line| line.contains("shutting down")).then_some(()))
        .await;
    service.terminate();
    let ended = tokio::task::spawn_blocking(move || service.wait());
    let code = tokio::time::timeout(TIMEOUT, ended).await.expect("the program exits at once").unwrap();
    assert_eq!(code, Some(128 + 15));
}

/// Much shorter than the grace period and the timeouts.
const TIMEOUT: Duration = Duration::from_secs(20);
