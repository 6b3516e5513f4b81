//! Metrics that tests read.

use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) struct RecordedMetrics {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl RecordedMetrics {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter.clone()).build();
        Self { provider, exporter }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("test")
    }

    /// The value of each label set of an instrument: the count of a histogram, else the value.
    pub(crate) fn read(&self, name: &str) -> BTreeMap<Labels, u64> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let metrics = self.exporter.get_finished_metrics().unwrap();
        let metrics = metrics.iter().flat_map(ResourceMetrics::scope_metrics);
        let metrics = metrics.flat_map(ScopeMetrics::metrics).filter(|metric| metric.name() == name);
        metrics.flat_map(|metric| values(metric.data())).collect()
    }
}

fn values(data: &AggregatedMetrics) -> Vec<(Labels, u64)> {
    match data {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            histogram.data_points().map(|point| (labels(point.attributes()), point.count())).collect()
        }
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            sum.data_points().map(|point| (labels(point.attributes()), point.value())).collect()
        }
        AggregatedMetrics::U64(MetricData::Gauge(gauge)) => {
            gauge.data_points().map(|point| (labels(point.attributes()), point.value())).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Labels {
    attributes.map(|label| (label.key.to_string(), label.value.to_string())).collect()
}
