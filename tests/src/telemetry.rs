//! Records the metrics and spans of a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry::trace::{SpanId, SpanKind, TraceId, TracerProvider};
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The metrics of all components that are created while this lives, and the spans of this thread.
///
/// The meter provider is that of the process, so tests that record wait for each other. Spans are recorded as
/// the programs do: root spans at the level info, and others at the level debug inside another span.
#[derive(Debug)]
pub struct RecordedTelemetry {
    meters: SdkMeterProvider,
    series: Shared<Series>,
    tracers: SdkTracerProvider,
    spans: Shared<RecordedSpan>,
    _subscriber: tracing::subscriber::DefaultGuard,
    _alone: MutexGuard<'static, ()>,
}

type Shared<Item> = Arc<Mutex<Vec<Item>>>;
type Labels = BTreeMap<String, String>;

/// The current value of an instrument with one set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in OpenTelemetry, with dots.
    pub name: String,
    /// The attributes of the measurement.
    pub labels: Labels,
    /// The value; of a histogram, the number of recorded values.
    pub value: f64,
}

/// A span that has ended, with what an exporter would send of it.
#[derive(Debug, Clone)]
pub struct RecordedSpan {
    /// The name of the operation.
    pub name: String,
    /// Internal, client or server.
    pub kind: SpanKind,
    /// Equal for all spans of a trace.
    pub trace: TraceId,
    /// Unique within the trace.
    pub id: SpanId,
    /// The id of the parent; `SpanId::INVALID` of a root span.
    pub parent: SpanId,
    /// The ids of the spans that this span links to.
    pub links: Vec<SpanId>,
    /// The fields of the span.
    pub attributes: Labels,
}

static ALONE: Mutex<()> = Mutex::new(());
/// Metrics are collected on request only.
const NEVER: Duration = Duration::from_hours(24);

impl RecordedTelemetry {
    /// Starts to record. Waits until no other test records.
    #[must_use]
    pub fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let series = Shared::default();
        let reader =
            PeriodicReader::builder(MetricRecorder(Arc::clone(&series))).with_interval(NEVER).build();
        let meters = SdkMeterProvider::builder().with_reader(reader).build();
        global::set_meter_provider(meters.clone());
        let spans = Shared::default();
        let tracers =
            SdkTracerProvider::builder().with_simple_exporter(SpanRecorder(Arc::clone(&spans))).build();
        let subscriber = tracing::subscriber::set_default(
            tracing_subscriber::registry().with(recording_layer(tracers.tracer("tests"))),
        );
        Self { meters, series, tracers, spans, _subscriber: subscriber, _alone: alone }
    }

    /// All series of all metrics, as an exporter gets them now.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        self.meters.force_flush().expect("the reader collects");
        lock(&self.series).clone()
    }

    /// The sum of the series of a metric that have all of these labels, rounded; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "tests count to small numbers")]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<i64> {
        let has = |series: &Series| {
            labels.iter().all(|(label, value)| series.labels.get(*label).map(String::as_str) == Some(value))
        };
        let series = self.series().into_iter().filter(|series| series.name == name && has(series));
        series.map(|series| series.value).reduce(|left, right| left + right).map(|sum| sum.round() as i64)
    }

    /// In the order in which they ended.
    #[must_use]
    pub fn spans(&self) -> Vec<RecordedSpan> {
        self.tracers.force_flush().expect("spans are exported");
        lock(&self.spans).clone()
    }
}

/// Records spans as the programs do.
fn recording_layer<S>(tracer: opentelemetry_sdk::trace::Tracer) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    let filter = dynamic_filter_fn(|metadata, context| {
        let is_enabled = *metadata.level() == Level::INFO || context.lookup_current().is_some();
        metadata.is_span() && *metadata.level() <= Level::DEBUG && is_enabled
    });
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_filter(filter.with_max_level_hint(LevelFilter::DEBUG))
}

#[derive(Debug)]
struct MetricRecorder(Shared<Series>);

impl PushMetricExporter for MetricRecorder {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let metrics = metrics.scope_metrics().flat_map(ScopeMetrics::metrics);
        *lock(&self.0) = metrics.flat_map(|metric| series(metric.name(), metric.data())).collect();
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

#[expect(clippy::cast_precision_loss, reason = "tests count to small numbers")]
fn series(name: &str, data: &AggregatedMetrics) -> Vec<Series> {
    match data {
        AggregatedMetrics::F64(data) => series_of(name, data, |value| value),
        AggregatedMetrics::U64(data) => series_of(name, data, |value| value as f64),
        AggregatedMetrics::I64(data) => series_of(name, data, |value| value as f64),
    }
}

#[expect(clippy::cast_precision_loss, reason = "tests count to small numbers")]
fn series_of<T: Copy>(name: &str, data: &MetricData<T>, to_f64: impl Fn(T) -> f64) -> Vec<Series> {
    let labels = |attributes: &mut dyn Iterator<Item = &KeyValue>| attributes.map(label).collect();
    let series = |labels, value| Series { name: name.to_owned(), labels, value };
    match data {
        MetricData::Gauge(gauge) => {
            gauge.data_points().map(|at| series(labels(&mut at.attributes()), to_f64(at.value()))).collect()
        }
        MetricData::Sum(sum) => {
            sum.data_points().map(|at| series(labels(&mut at.attributes()), to_f64(at.value()))).collect()
        }
        MetricData::Histogram(histogram) => histogram
            .data_points()
            .map(|at| series(labels(&mut at.attributes()), at.count() as f64))
            .collect(),
        MetricData::ExponentialHistogram(_) => panic!("{name}: no exponential histograms are used"),
    }
}

fn label(attribute: &KeyValue) -> (String, String) {
    (attribute.key.to_string(), attribute.value.to_string())
}

#[derive(Debug)]
struct SpanRecorder(Shared<RecordedSpan>);

impl SpanExporter for SpanRecorder {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        lock(&self.0).extend(batch.into_iter().map(|span| RecordedSpan {
            name: span.name.into_owned(),
            kind: span.span_kind,
            trace: span.span_context.trace_id(),
            id: span.span_context.span_id(),
            parent: span.parent_span_id,
            links: span.links.iter().map(|link| link.span_context.span_id()).collect(),
            attributes: span.attributes.iter().map(label).collect(),
        }));
        Ok(())
    }
}

fn lock<Item>(shared: &Shared<Item>) -> MutexGuard<'_, Vec<Item>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
