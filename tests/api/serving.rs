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
