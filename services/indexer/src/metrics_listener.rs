//! `METRICS_LISTEN`: serves `/metrics`, `/livez` and `/readyz` while a command runs.

use std::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use chart_index_telemetry::serve_private;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::cli::Command;

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
    readiness: &Readiness,
) -> Result<Option<AbortOnDropHandle<io::Result<()>>>> {
    let Some(address) = command.metrics_listen() else { return Ok(None) };
    match listen(address).await {
        Ok(listener) => {
            let readyz = get(readyz).with_state(readiness.clone());
            let served = serve_private(listener, readyz, future::pending());
            Ok(Some(AbortOnDropHandle::new(tokio::spawn(served))))
        }
        Err(error) if command.is_permanent() => Err(error),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "metrics are not served");
            Ok(None)
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("METRICS_LISTEN: cannot listen on {address}"))?;
    // Programs that start a command read this line, like the corresponding line of chart-index.
    let address = listener.local_addr().context("get the address of a listener")?;
    tracing::info!(listener = "metrics", %address, "listening");
    Ok(listener)
}

async fn readyz(State(Readiness(is_ready)): State<Readiness>) -> (StatusCode, &'static str) {
    if is_ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "follow has not reached every search node, or one has no index yet\n",
        )
    }
}
