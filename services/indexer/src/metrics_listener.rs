//! `METRICS_LISTEN`: serves `/metrics` and `/livez` while a command runs.

use std::future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chart_index_http::{ApiError, HttpService, Server, ServerConfig, Worker};
use chart_index_ratelimit::TrustedProxies;
use chart_index_telemetry::Scrape;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Maximum connections: more than scrapers and probes need.
const MAX_CONNECTIONS: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
/// Maximum time to receive the head of a request, and in which a client reads nothing of its response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts to serve the metrics on this address. Dropping the handle stops it.
///
/// # Errors
/// The address cannot be used.
pub(crate) async fn start(address: SocketAddr, scrape: Scrape) -> Result<AbortOnDropHandle<()>> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("METRICS_LISTEN: cannot listen on {address}"))?;
    // Programs that start a command read this line, like the corresponding line of chart-index.
    let address = listener.local_addr().context("get the address of a listener")?;
    tracing::info!(listener = "metrics", %address, "listening");
    Ok(AbortOnDropHandle::new(tokio::spawn(serve(listener, scrape))))
}

async fn serve(listener: TcpListener, scrape: Scrape) {
    let config = ServerConfig {
        max_connections: MAX_CONNECTIONS,
        max_connections_per_peer: MAX_CONNECTIONS,
        header_read_timeout: TIMEOUT,
        write_timeout: TIMEOUT,
        drain_delay: Duration::ZERO,
        shutdown_grace: Duration::ZERO,
    };
    let workers = vec![Worker::on_current_runtime(HttpService::private(routes(scrape)))];
    let server =
        Server { listener, workers, config, trusted_proxies: TrustedProxies::default(), meter: None };
    server.serve(future::pending()).await;
}

fn routes(scrape: Scrape) -> Router {
    Router::new().route("/livez", get(async || "ok\n")).route("/metrics", get(metrics)).with_state(scrape)
}

async fn metrics(State(scrape): State<Scrape>) -> Result<Response, ApiError> {
    let text = scrape.text().map_err(|error| ApiError::Internal(error.into()))?;
    Ok(([(CONTENT_TYPE, Scrape::CONTENT_TYPE)], text).into_response())
}
