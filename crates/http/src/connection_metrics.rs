//! The metrics of the connections of a listener (docs/operations/metrics.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chart_index_instrumentation::{Counter, Metrics};
use strum::{IntoStaticStr, VariantArray};

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum CloseReason {
    /// The client closed it, or asked for the close.
    Completed,
    /// The client was too slow, or idle for too long.
    Timeout,
    /// The client disconnected during a request, or did not send HTTP.
    ClientError,
    /// Its peer had the maximum of connections.
    PeerLimit,
    /// The server shuts down.
    Shutdown,
}

#[derive(Debug)]
pub(crate) struct ConnectionMetrics {
    open: AtomicU64,
    /// By reason.
    closed: Vec<Counter>,
}

/// A connection that is counted as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    metrics: Arc<ConnectionMetrics>,
    reason: CloseReason,
}

impl ConnectionMetrics {
    pub(crate) fn new(metrics: &Metrics, max_connections: u32) -> Arc<Self> {
        let closed = |reason: &CloseReason| {
            metrics.chart_index_http_connections_closed_total.with([reason.into_str()])
        };
        let closed = CloseReason::VARIANTS.iter().map(closed).collect();
        let this = Arc::new(Self { open: AtomicU64::new(0), closed });
        metrics.observe(&this, move |this, metrics| {
            metrics.chart_index_http_connections.set([], this.open.load(Ordering::Relaxed));
            metrics.chart_index_http_connections_limit.set([], max_connections);
        });
        this
    }

    /// Counts a connection that was closed before it was served.
    pub(crate) fn count_closed(&self, reason: CloseReason) {
        if let Some(closed) = self.closed.get(reason as usize) {
            closed.inc();
        }
    }

    /// Counts a connection as open until the returned value is closed or dropped.
    pub(crate) fn open(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        // A task that is aborted drops its connection.
        OpenConnection { metrics: Arc::clone(self), reason: CloseReason::Shutdown }
    }
}

impl OpenConnection {
    /// Counts the connection as closed for this reason; when it is dropped instead, the reason is the shutdown.
    pub(crate) fn close(mut self, reason: CloseReason) {
        self.reason = reason;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.open.fetch_sub(1, Ordering::Relaxed);
        self.metrics.count_closed(self.reason);
    }
}
