//! Starts and ends the telemetry of a program.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chart_index_instrumentation::{SCOPE, Sampler, metrics};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;

use crate::counted_exporter::ExportState;
use crate::log::Log;
use crate::otlp::StartError;
use crate::{LogConfig, OtlpConfig, print, process_metrics, runtime_metrics, traces};

/// Maximum time to push what is left at exit, whether or not the collector responds.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The telemetry of the process: its log, metrics and traces.
#[derive(Debug)]
#[must_use = "`finish` writes and pushes what is left"]
pub struct Telemetry {
    log: Log,
    traces: Option<SdkTracerProvider>,
    sampler: Sampler,
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
        let state = ExportState::new();
        global::set_text_map_propagator(TraceContextPropagator::new());
        let name = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| program.to_owned());
        let exporter = otlp.span_exporter(&state)?;
        let traces = exporter.map(|exporter| traces::provider(resource(&name, version), exporter, state));
        let log = Log::start(log, traces.as_ref().map(|provider| provider.tracer(SCOPE)));
        let lines = log.dropped_lines();
        metrics().observe_always(move |metrics| {
            metrics.target_info.set([&name, version], true);
            metrics.chart_index_telemetry_dropped_total.set(["logs"], lines.dropped_lines() as u64);
        });
        process_metrics::register(metrics());
        Ok(Self { log, traces, sampler: otlp.sampler() })
    }

    /// Adds the metrics of the runtime of the program.
    pub fn observe_runtime<'a>(&self, name: &'static str, runtimes: impl IntoIterator<Item = &'a Handle>) {
        runtime_metrics::register(metrics(), name, runtimes);
    }

    /// Decides which root spans are created.
    #[must_use]
    pub const fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// Pushes the spans that are left, up to a second, then writes the buffered log lines and the final message
    /// of the program, if any, up to two seconds. To be called outside of an async runtime.
    pub fn finish(self, final_message: Option<String>) {
        if let Some(traces) = self.traces {
            let (done, finished) = mpsc::channel();
            // In a thread, because the exporter may be waiting for a collector that does not respond.
            thread::spawn(move || {
                drop(traces.shutdown_with_timeout(FLUSH_TIMEOUT));
                let _ = done.send(());
            });
            let _ = finished.recv_timeout(FLUSH_TIMEOUT);
        }
        self.log.finish(final_message);
    }
}

fn resource(name: &str, version: &'static str) -> Resource {
    let version = KeyValue::new("service.version", version);
    Resource::builder().with_service_name(name.to_owned()).with_attribute(version).build()
}
