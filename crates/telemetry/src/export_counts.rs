//! Counts what could not be exported, and logs when exports begin to fail and when they succeed again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// What was dropped since the start, by signal. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExportCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    dropped_spans: AtomicU64,
    dropped_metric_exports: AtomicU64,
}

impl ExportCounts {
    /// Spans whose export failed.
    pub(crate) fn dropped_spans(&self) -> u64 {
        self.0.dropped_spans.load(Ordering::Relaxed)
    }

    /// Exports of metrics that failed. The next one has the same counters, with newer values.
    pub(crate) fn dropped_metric_exports(&self) -> u64 {
        self.0.dropped_metric_exports.load(Ordering::Relaxed)
    }
}

/// An exporter with its failures counted.
pub(crate) struct Counted<E> {
    exporter: E,
    signal: &'static str,
    counts: ExportCounts,
    is_failing: AtomicBool,
}

impl<E> Counted<E> {
    pub(crate) const fn metrics(exporter: E, counts: ExportCounts) -> Self {
        Self { exporter, signal: "metrics", counts, is_failing: AtomicBool::new(false) }
    }

    pub(crate) const fn traces(exporter: E, counts: ExportCounts) -> Self {
        Self { exporter, signal: "traces", counts, is_failing: AtomicBool::new(false) }
    }

    /// Logs the first failure, and the first success after it.
    fn log_transition(&self, result: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !was_failing => {
                tracing::warn!(signal = self.signal, %error, "telemetry export failed");
            }
            Ok(()) if was_failing => {
                tracing::info!(signal = self.signal, "telemetry export succeeds again");
            }
            _ => {}
        }
    }
}

impl<E> fmt::Debug for Counted<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        if result.is_err() {
            self.counts.0.dropped_spans.fetch_add(spans as u64, Ordering::Relaxed);
        }
        self.log_transition(&result);
        result
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

impl<E: PushMetricExporter> PushMetricExporter for Counted<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let result = self.exporter.export(metrics).await;
        if result.is_err() {
            self.counts.0.dropped_metric_exports.fetch_add(1, Ordering::Relaxed);
        }
        self.log_transition(&result);
        result
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
