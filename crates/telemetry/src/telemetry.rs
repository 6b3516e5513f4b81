//! Starts and ends the telemetry of a program.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use chart_index_instrumentation::{SCOPE, Sampler, meter};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus::Registry;
use tokio::runtime::Handle;

use crate::export_counts::{ExportCounts, Signal};
use crate::log::{DroppedLines, Log};
use crate::metrics::MetricsError;
use crate::otlp::OtlpError;
use crate::{LogConfig, OtlpConfig, Scrape, metrics, print, process_metrics, runtime_metrics, traces};

/// Maximum time to push what is left at exit, whether or not the collector responds.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The telemetry of the process: its log, metrics and traces.
#[derive(Debug)]
#[must_use = "`finish` writes and pushes what is left"]
pub struct Telemetry {
    log: Log,
    metrics: SdkMeterProvider,
    traces: Option<SdkTracerProvider>,
    sampler: Sampler,
    scrape: Scrape,
}

/// The telemetry cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the telemetry")]
pub struct StartError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<MetricsError> for StartError {
    fn from(error: MetricsError) -> Self {
        Self(error.into())
    }
}

impl From<OtlpError> for StartError {
    fn from(error: OtlpError) -> Self {
        Self(error.into())
    }
}

impl Telemetry {
    /// Starts the telemetry of the program with this name and version; to be called once, before the components
    /// are created whose metrics it reads, and outside of an async runtime.
    ///
    /// The resource is that of the variables `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, if they are
    /// set.
    ///
    /// # Errors
    ///
    /// The HTTP client for the collector cannot be built. An unavailable collector is not an error.
    pub fn start(
        program: &'static str,
        version: &'static str,
        log: &LogConfig,
        otlp: &OtlpConfig,
    ) -> Result<Self, StartError> {
        print::set_format(log.log_format);
        let (counts, registry) = (ExportCounts::default(), Registry::new());
        let resource = resource(program, version);
        let metrics = metrics::provider(resource.clone(), registry.clone(), otlp, &counts)?;
        global::set_meter_provider(metrics.clone());
        global::set_text_map_propagator(TraceContextPropagator::new());
        let traces =
            otlp.span_exporter(&counts)?.map(|exporter| traces::provider(resource, exporter, &counts));
        let log = Log::start(log, traces.as_ref().map(|provider| provider.tracer(SCOPE)));
        process_metrics::register();
        register_drops(counts, log.dropped_lines());
        Ok(Self { log, metrics, traces, sampler: otlp.sampler(), scrape: Scrape::new(registry) })
    }

    /// Adds the metrics of the runtime of the program.
    pub fn observe_runtime<'a>(&self, name: &'static str, runtimes: impl IntoIterator<Item = &'a Handle>) {
        runtime_metrics::register(name, runtimes);
    }

    /// Decides which root spans are created.
    #[must_use]
    pub const fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// Reads the metrics for Prometheus.
    #[must_use]
    pub fn scrape(&self) -> Scrape {
        self.scrape.clone()
    }

    /// Pushes what is left, up to a second, then writes the buffered log lines and the final message of the
    /// program, if any, up to two seconds. To be called outside of an async runtime.
    pub fn finish(self, final_message: Option<String>) {
        let (metrics, traces) = (self.metrics, self.traces);
        let flushes: [Box<dyn FnOnce() + Send>; 2] = [
            Box::new(move || drop(metrics.shutdown_with_timeout(FLUSH_TIMEOUT))),
            Box::new(move || drop(traces.map(|traces| traces.shutdown_with_timeout(FLUSH_TIMEOUT)))),
        ];
        let (done, finished) = mpsc::channel();
        for flush in flushes {
            let done = done.clone();
            // In threads, because an exporter may be waiting for a collector that does not respond.
            thread::spawn(move || {
                flush();
                let _ = done.send(());
            });
        }
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        for _ in 0..2 {
            let _ = finished.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        self.log.finish(final_message);
    }
}

fn resource(program: &'static str, version: &'static str) -> Resource {
    let name = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
    Resource::builder()
        .with_service_name(name.unwrap_or_else(|| program.to_owned()))
        .with_attribute(KeyValue::new("service.version", version))
        .build()
}

fn register_drops(counts: ExportCounts, lines: DroppedLines) {
    let signal = |signal| [KeyValue::new("chart_index.signal", signal)];
    let (traces, metrics, logs) = (signal("traces"), signal("metrics"), signal("logs"));
    meter()
        .u64_observable_counter("chart_index.telemetry.dropped")
        .with_unit("{item}")
        .with_description("Spans and exports of metrics that failed or were rejected, log lines not written")
        .with_callback(move |observer| {
            observer.observe(counts.dropped(Signal::Traces), &traces);
            observer.observe(counts.dropped(Signal::Metrics), &metrics);
            observer.observe(lines.count(), &logs);
        })
        .build();
}
