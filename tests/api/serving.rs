//! How the program starts, tells its health and ends.

use super::*;

/// "Health and metrics live on a second, private listener"
#[tokio::test]
async fn health_is_told_on_the_private_listener_only() {
    let index = Index::over(Library::new()).await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(index.service.private_client().get(path).await.status, 200, "{path}");
        assert_eq!(index.get(path).await.status, 404, "{path}");
    }
    assert_eq!(index.service.private_client().get("/api/chartsets").await.status, 404);
}

/// One binary serves one service or both.
#[tokio::test]
async fn a_replica_may_serve_one_service() {
    let index = Index::over(Library::new()).await;
    let (chart, list) = (format!("/api/charts/{}", "0".repeat(64)), "/api/chartsets");
    for (services, chart_status, list_status) in
        [("lookup", 200, 404), ("browse", 404, 200), ("lookup,browse", 200, 200)]
    {
        let options = ServiceOptions { arguments: &["--services", services], ..ServiceOptions::default() };
        let service = Service::start_with(index.database.url(), &options);
        assert_eq!(service.client().get(&chart).await.status, chart_status, "{services}");
        assert_eq!(service.client().get(list).await.status, list_status, "{services}");
    }
}

/// Graceful shutdown on SIGTERM: the program ends by itself, with success, although a client keeps its
/// connection open.
#[tokio::test]
async fn the_program_ends_on_sigterm() {
    let mut index = Index::over(Library::new()).await;
    assert_eq!(index.get("/api/chartsets").await.status, 200);
    index.service.terminate();
    assert_eq!(index.service.wait(), Some(0));
}

/// A second signal does not wait for what is in flight.
#[tokio::test]
async fn a_second_signal_ends_the_program_at_once() {
    let grace = [("SHUTDOWN_GRACE_MS", "600000"), ("HEADER_READ_TIMEOUT_MS", "600000")];
    let database = TestDatabase::create().await;
    let options = ServiceOptions { variables: &grace, ..ServiceOptions::default() };
    let mut service = Service::start_with(database.url(), &options);
    // The beginning of a request, which the server has received when it answers the next client.
    let mut begun = std::net::TcpStream::connect(service.address()).unwrap();
    std::io::Write::write_all(&mut begun, b"GET /nowhere HTTP/1.1\r\nHost:").unwrap();
    assert_eq!(service.client().get("/nowhere").await.status, 404);
    service.terminate();
    within(PROMISED, async || service.log().iter().any(|line| line.contains("shutting down")).then_some(()))
        .await;
    service.terminate();
    let ended = tokio::task::spawn_blocking(move || service.wait());
    let code = tokio::time::timeout(PROMISED, ended).await.expect("it ends at once").unwrap();
    assert_eq!(code, Some(128 + 15));
}

/// A time that is short against the grace period and the timeouts.
const PROMISED: Duration = Duration::from_secs(20);
