//! The private listener of a program: what a scraper and probes request. It must not be public.

use std::io;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use chart_index_instrumentation::{Metrics, metrics};
use tokio::net::TcpListener;

/// Serves `/metrics`, `/livez`, which is 200 while the process responds, and `/readyz` until `shutdown`
/// completes, then until the requests in flight are finished. Connections have no limits.
///
/// # Errors
///
/// Those of [`axum::serve()`], which has none.
pub async fn serve_private(
    listener: TcpListener,
    readyz: MethodRouter,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(scrape))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", readyz);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown).await
}

async fn scrape() -> impl IntoResponse {
    match metrics().text() {
        Ok(text) => ([(CONTENT_TYPE, Metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
