//! `METRICS_LISTEN`: serves `/metrics`, `/livez` and `/readyz` while a command runs.

use std::future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

use crate::cli::Command;

/// Maximum connections: more than scrapers and probes need.
const MAX_CONNECTIONS: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
/// Maximum time to receive the head of a request, and in which a client reads nothing of its response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether `/readyz` is 200: always, except that `follow` has to find an index on every node first. Clones
/// share it.
#[derive(Debug, Clone)]
pub(crate) struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub(crate) fn new(is_ready: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_ready)))
    }

    pub(crate) fn set(&self, is_ready: bool) {
        self.0.store(is_ready, Ordering::Relaxed);
    }
}

/// Starts to serve the metrics of a command, if it has an address for them. Dropping the handle stops it. A
/// command that ends goes on without: it may run beside `follow`, in the same container.
///
/// # Errors
/// The address cannot be used, and the command runs permanently.
pub(crate) async fn start(
    command: &Command,
    scrape: Scrape,
    readiness: &Readiness,
) -> Result<Option<AbortOnDropHandle<()>>> {
    let Some(address) = command.metrics_listen() else { return Ok(None) };
    match listen(address, scrape, readiness.clone()).await {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if command.is_permanent() => Err(error),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "metrics are not served");
            Ok(None)
        }
    }
}

async fn listen(address: SocketAddr, scrape: Scrape, readiness: Readiness) -> Result<AbortOnDropHandle<()>> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("METRICS_LISTEN: cannot listen on {address}"))?;
    // Programs that start a command read this line, like the corresponding line of chart-index.
    let address = listener.local_addr().context("get the address of a listener")?;
    tracing::info!(listener = "metrics", %address, "listening");
    Ok(AbortOnDropHandle::new(tokio::spawn(serve(listener, routes(scrape, readiness)))))
}

async fn serve(listener: TcpListener, routes: Router) {
    let config = ServerConfig {
        max_connections: MAX_CONNECTIONS,
        max_connections_per_peer: MAX_CONNECTIONS,
        header_read_timeout: TIMEOUT,
        write_timeout: TIMEOUT,
        drain_delay: Duration::ZERO,
        shutdown_grace: Duration::ZERO,
    };
    let workers = vec![Worker::on_current_runtime(HttpService::private(routes))];
    let server =
        Server { listener, workers, config, trusted_proxies: TrustedProxies::default(), meter: None };
    server.serve(future::pending()).await;
}

fn routes(scrape: Scrape, readiness: Readiness) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .with_state(scrape)
        .route("/readyz", get(readyz))
        .with_state(readiness)
        .route("/livez", get(async || "ok\n"))
}

async fn readyz(State(Readiness(is_ready)): State<Readiness>) -> Result<&'static str, ApiError> {
    if is_ready.load(Ordering::Relaxed) {
        return Ok("ok\n");
    }
    Err(ApiError::Unavailable("follow has not reached every search node, or one has no index yet".into()))
}

async fn metrics(State(scrape): State<Scrape>) -> Result<Response, ApiError> {
    let text = scrape.text().map_err(|error| ApiError::Internal(error.into()))?;
    Ok(([(CONTENT_TYPE, Scrape::CONTENT_TYPE)], text).into_response())
}
