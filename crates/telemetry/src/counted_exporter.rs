//! Counts the spans that are not delivered, and logs when exports begin to fail and when they succeed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chart_index_instrumentation::{Counter, metrics};
use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};

/// The state of the export. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ExportState {
    /// Spans that failed, were rejected, or found the queue full.
    dropped: Counter,
    /// Spans that are not exported yet.
    pending: Arc<AtomicUsize>,
    /// Spans that the collector has rejected of the present export.
    rejected: Arc<AtomicU64>,
}

impl ExportState {
    pub(crate) fn new() -> Self {
        let dropped = metrics().chart_index_telemetry_dropped_total.with(["traces"]);
        Self { dropped, pending: Arc::default(), rejected: Arc::default() }
    }

    /// Records how many spans the collector has rejected, in its response to the present export.
    pub(crate) fn record_rejected(&self, spans: u64) {
        self.rejected.store(spans, Ordering::Relaxed);
    }
}

/// An exporter with its failures counted.
#[derive(Debug)]
pub(crate) struct CountedExporter<E> {
    exporter: E,
    state: ExportState,
    is_failing: AtomicBool,
}

impl<E> CountedExporter<E> {
    pub(crate) const fn new(exporter: E, state: ExportState) -> Self {
        Self { exporter, state, is_failing: AtomicBool::new(false) }
    }

    /// Counts what an export has not delivered of this number of spans. It also failed if the collector has
    /// rejected some of them. Logs the first failure, and the first success after it.
    fn record(&self, result: OTelSdkResult, spans: u64) -> OTelSdkResult {
        let rejected = self.state.rejected.swap(0, Ordering::Relaxed).min(spans);
        let (dropped, result) = match result {
            Err(error) => (spans, Err(error)),
            Ok(()) if rejected > 0 => {
                let message = format!("the collector has rejected {rejected} of {spans}");
                (rejected, Err(OTelSdkError::InternalFailure(message)))
            }
            Ok(()) => (0, Ok(())),
        };
        self.state.dropped.inc_by(dropped);
        self.log_transition(&result);
        result
    }

    fn log_transition(&self, result: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !was_failing => {
                tracing::warn!(%error, "telemetry export failed");
            }
            Ok(()) if was_failing => {
                tracing::info!("telemetry export succeeds again");
            }
            _ => {}
        }
    }
}

impl<E: SpanExporter> SpanExporter for CountedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.state.pending.fetch_sub(spans, Ordering::Relaxed);
        self.record(result, spans as u64)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// A processor whose queue is bounded here: the SDK does not tell what it drops.
#[derive(Debug)]
pub(crate) struct BoundedProcessor<P> {
    pub(crate) processor: P,
    pub(crate) state: ExportState,
    pub(crate) max_pending: usize,
}

impl<P: SpanProcessor> SpanProcessor for BoundedProcessor<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.processor.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.state.pending.fetch_add(1, Ordering::Relaxed) < self.max_pending {
            self.processor.on_end(span);
        } else {
            self.state.pending.fetch_sub(1, Ordering::Relaxed);
            self.state.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.processor.set_resource(resource);
    }
}
