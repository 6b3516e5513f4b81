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

/// Starts to serve the metrics of a command, if it has an address for them, and `/readyz`, which is 200 while
/// it is ready. Dropping the handle stops it. A command that ends goes on without: it may run beside `follow`,
/// in the same container.
///
/// # Errors
/// The address cannot be used, and the command runs permanently.
pub(crate) async fn start(
    command: &Command,
    is_ready: &Arc<AtomicBool>,
) -> Result<Option<AbortOnDropHandle<io::Result<()>>>> {
    let Some(address) = command.metrics_listen() else { return Ok(None) };
    match listen(address).await {
        Ok(listener) => {
            let readyz = get(readyz).with_state(Arc::clone(is_ready));
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

async fn readyz(State(is_ready): State<Arc<AtomicBool>>) -> (StatusCode, &'static str) {
    if is_ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "follow has not reached every search node, or one has no index yet\n",
        )
    }
}
