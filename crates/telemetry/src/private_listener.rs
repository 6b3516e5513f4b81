//! The private listener of a program: what a scraper and probes request. It must not be public.

use std::io;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use tokio::net::TcpListener;

use crate::Scrape;

/// Serves `/metrics`, `/livez`, which is 200 while the process responds, and `/readyz` until `shutdown`
/// completes, then until the requests in flight are finished. Connections have no limits.
///
/// # Errors
///
/// Those of [`axum::serve`], which has none.
pub async fn serve_private(
    listener: TcpListener,
    scrape: Scrape,
    readyz: MethodRouter,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .with_state(scrape)
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", readyz);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown).await
}

async fn metrics(State(scrape): State<Scrape>) -> impl IntoResponse {
    match scrape.text() {
        Ok(text) => ([(CONTENT_TYPE, Scrape::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
