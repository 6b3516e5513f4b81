//! The metrics of the connections of a listener (docs/operations/metrics.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, Meter};
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
    closed: Vec<BoundCounter<u64>>,
}

/// A connection that is counted as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    metrics: Arc<ConnectionMetrics>,
    reason: CloseReason,
}

impl ConnectionMetrics {
    /// Creates the instruments.
    pub(crate) fn new(meter: &Meter, max_connections: u32) -> Arc<Self> {
        let closed = meter
            .u64_counter("chart_index.http.connections.closed")
            .with_unit("{connection}")
            .with_description("Connections that ended")
            .build();
        let label = |reason: &CloseReason| KeyValue::new("chart_index.reason", reason.into_str());
        let closed = CloseReason::VARIANTS.iter().map(|reason| closed.bind(&[label(reason)])).collect();
        let metrics = Arc::new(Self { open: AtomicU64::new(0), closed });
        metrics.observe(meter, max_connections);
        metrics
    }

    /// Creates the gauges of open connections and of their limit.
    fn observe(self: &Arc<Self>, meter: &Meter, max_connections: u32) {
        // The SDK keeps callbacks forever.
        let metrics = Arc::downgrade(self);
        meter
            .u64_observable_gauge("chart_index.http.connections")
            .with_unit("{connection}")
            .with_description("Open connections")
            .with_callback(move |observer| {
                let Some(metrics) = metrics.upgrade() else { return };
                observer.observe(metrics.open.load(Ordering::Relaxed), &[]);
            })
            .build();
        meter
            .u64_observable_gauge("chart_index.http.connections.limit")
            .with_unit("{connection}")
            .with_description("Maximum open connections")
            .with_callback(move |observer| observer.observe(u64::from(max_connections), &[]))
            .build();
    }

    /// Counts a connection that was closed before it was served.
    pub(crate) fn count_closed(&self, reason: CloseReason) {
        self.closed[reason as usize].add(1);
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
