//! Services, health endpoints and shutdown (docs/operations/monitoring.md, "Health").

use super::*;

#[tokio::test]
async fn health_endpoints_are_on_the_private_listener_only() {
    let index = Index::new(Library::new()).await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(index.service.private_client().get(path).await.status, 200, "{path}");
        assert_eq!(index.get(path).await.status, 404, "{path}");
    }
    assert_eq!(index.service.private_client().get("/api/chartsets").await.status, 404);
}

/// A replica serves one service or several.
#[tokio::test]
async fn replica_serves_the_selected_services() {
    let index = Index::new(Library::new()).await;
    let (chart, list) = (format!("/api/charts/{}", "0".repeat(64)), "/api/chartsets");
    for (services, chart_status, list_status, page_status, feed_status) in [
        ("lookup", 200, 404, 404, 404),
        ("browse", 404, 200, 404, 404),
        ("pages", 404, 404, 200, 404),
        ("bulk", 404, 404, 404, 200),
        ("lookup,browse", 200, 200, 404, 404),
        ("lookup,browse,pages,bulk", 200, 200, 200, 200),
    ] {
        let options = ServiceOptions { arguments: &["--services", services], ..ServiceOptions::default() };
        let service = Service::start_with(index.database.url(), &options);
        assert_eq!(service.client().get(&chart).await.status, chart_status, "{services}");
        assert_eq!(service.client().get(list).await.status, list_status, "{services}");
        assert_eq!(service.client().get("/").await.status, page_status, "{services}");
        assert_eq!(service.client().get("/api/changes").await.status, feed_status, "{services}");
    }
}

/// The program exits with 0 on SIGTERM, although a client keeps its connection open.
#[tokio::test]
async fn program_exits_on_sigterm() {
    let mut index = Index::new(Library::new()).await;
    assert_eq!(index.get("/api/chartsets").await.status, 200);
    index.service.terminate();
    assert_eq!(index.service.wait(), Some(0));
}

async fn assert_metrics(private: &Client, samples: &[&str]) {
    let response = private.get("/metrics").await;
    let text = String::from_utf8(response.body).unwrap();
    for sample in samples {
        assert!(text.lines().any(|line| line == *sample), "{sample} in {text}");
    }
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
    assert_metrics(&private, &["chart_index_ready 1", "chart_index_draining 0"]).await;

    service.terminate();
    let unready = async || (private.get("/readyz").await.status == 503).then_some(());
    within(TIMEOUT, unready).await;
    assert_eq!(private.get("/livez").await.status, 200);
    assert_metrics(&private, &["chart_index_ready 0", "chart_index_draining 1"]).await;
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
