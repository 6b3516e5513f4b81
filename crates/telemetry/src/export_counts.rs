//! Counts what could not be exported, and logs when exports begin to fail and when they succeed again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
}

/// What was dropped since the start, by signal. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExportCounts(Arc<[SignalCounts; 2]>);

#[derive(Debug, Default)]
struct SignalCounts {
    dropped: AtomicU64,
    /// What the collector has rejected of the present export.
    rejected: AtomicU64,
}

impl ExportCounts {
    /// Spans, or exports of metrics, that failed or were rejected. The next export of metrics has the same
    /// counters, with newer values.
    pub(crate) fn dropped(&self, signal: Signal) -> u64 {
        self.of(signal).dropped.load(Ordering::Relaxed)
    }

    /// Records how many items the collector has rejected, in its response to the present export.
    pub(crate) fn record_rejected(&self, signal: Signal, items: u64) {
        self.of(signal).rejected.store(items, Ordering::Relaxed);
    }

    fn of(&self, signal: Signal) -> &SignalCounts {
        &self.0[signal as usize]
    }
}

/// An exporter with its failures counted.
pub(crate) struct Counted<E> {
    exporter: E,
    signal: Signal,
    counts: ExportCounts,
    is_failing: AtomicBool,
}

impl<E> Counted<E> {
    pub(crate) const fn new(exporter: E, signal: Signal, counts: ExportCounts) -> Self {
        Self { exporter, signal, counts, is_failing: AtomicBool::new(false) }
    }

    /// Counts what an export has not delivered of this number of items. It also failed if the collector has
    /// rejected some of them. Logs the first failure, and the first success after it.
    fn record(&self, result: OTelSdkResult, items: u64) -> OTelSdkResult {
        let counts = self.counts.of(self.signal);
        let rejected = counts.rejected.swap(0, Ordering::Relaxed).min(items);
        let (dropped, result) = match result {
            Err(error) => (items, Err(error)),
            Ok(()) if rejected > 0 => {
                let message = format!("the collector has rejected {rejected} of {items}");
                (rejected, Err(OTelSdkError::InternalFailure(message)))
            }
            Ok(()) => (0, Ok(())),
        };
        counts.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.log_transition(&result);
        result
    }

    fn log_transition(&self, result: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !was_failing => {
                tracing::warn!(signal = self.signal.name(), %error, "telemetry export failed");
            }
            Ok(()) if was_failing => {
                tracing::info!(signal = self.signal.name(), "telemetry export succeeds again");
            }
            _ => {}
        }
    }
}

impl Signal {
    /// The name in metrics and in the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
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
        let spans = batch.len() as u64;
        self.record(self.exporter.export(batch).await, spans)
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
        self.record(self.exporter.export(metrics).await, 1)
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
