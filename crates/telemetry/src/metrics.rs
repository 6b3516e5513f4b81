//! The meter provider: one set of instruments, read by Prometheus and pushed by OTLP.

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream};
use prometheus::Registry;

use crate::export_counts::{Counted, ExportCounts, Signal};
use crate::otlp::{OtlpConfig, OtlpError};

/// Maximum label sets of an instrument. Labels come from closed sets, so that none reaches it; further ones
/// would be counted together as `otel_metric_overflow`.
const MAX_LABEL_SETS: usize = 512;

/// The metrics cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsError {
    #[error(transparent)]
    Prometheus(#[from] OTelSdkError),
    #[error(transparent)]
    Otlp(#[from] OtlpError),
}

/// A provider whose metrics are added to the registry, and pushed if an endpoint is configured.
pub(crate) fn provider(
    resource: Resource,
    registry: Registry,
    otlp: &OtlpConfig,
    counts: &ExportCounts,
) -> Result<SdkMeterProvider, MetricsError> {
    let scraped = opentelemetry_prometheus::exporter()
        .with_registry(registry)
        // All instruments are of one scope: its labels would only repeat.
        .scope_info_enabled(false)
        .build()?;
    let mut builder = SdkMeterProvider::builder()
        .with_resource(resource)
        .with_reader(scraped)
        .with_view(|_: &Instrument| Stream::builder().with_cardinality_limit(MAX_LABEL_SETS).build().ok());
    if let Some(exporter) = otlp.metric_exporter(counts)? {
        let pushed = PeriodicReader::builder(Counted::new(exporter, Signal::Metrics, counts.clone()))
            .with_interval(otlp.metric_export_interval)
            .build();
        builder = builder.with_reader(pushed);
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use opentelemetry::KeyValue;
    use opentelemetry::metrics::MeterProvider;

    use super::*;
    use crate::Scrape;

    fn scraped(record: impl FnOnce(&opentelemetry::metrics::Meter)) -> String {
        let registry = Registry::new();
        let otlp = OtlpConfig {
            otlp_endpoint: None,
            otlp_headers: None,
            otlp_headers_file: None,
            metric_export_interval: std::time::Duration::from_mins(1),
            trace_sample_ratio: chart_index_instrumentation::Sampler::OFF,
        };
        let resource = Resource::builder_empty().with_service_name("test").build();
        let provider = provider(resource, registry.clone(), &otlp, &ExportCounts::default()).unwrap();
        record(&provider.meter("test"));
        Scrape::new(registry).text().unwrap()
    }

    #[test]
    fn histograms_have_the_boundaries_of_their_instrument() {
        let text = scraped(|meter| {
            let histogram =
                meter.f64_histogram("wait.time").with_unit("s").with_boundaries(vec![0.1, 2.0]).build();
            histogram.bind(&[KeyValue::new("a.b", "c")]).record(0.5);
        });
        for line in [
            "wait_time_seconds_bucket{a_b=\"c\",le=\"0.1\"} 0",
            "wait_time_seconds_bucket{a_b=\"c\",le=\"2\"} 1",
            "wait_time_seconds_bucket{a_b=\"c\",le=\"+Inf\"} 1",
            "wait_time_seconds_sum{a_b=\"c\"} 0.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("otel_scope"), "{text}");
    }

    #[test]
    fn label_sets_of_an_instrument_are_limited() {
        let text = scraped(|meter| {
            let counter = meter.u64_counter("hits").build();
            for number in 0..2 * i64::try_from(MAX_LABEL_SETS).unwrap() {
                counter.add(1, &[KeyValue::new("number", number)]);
            }
        });
        let series = text.lines().filter(|line| line.starts_with("hits_total{")).count();
        assert_eq!(series, MAX_LABEL_SETS + 1, "with the one for the overflow");
        assert!(text.contains("otel_metric_overflow=\"true\""));
    }
}
