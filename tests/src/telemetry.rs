//! Records the metrics and spans of a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chart_index_instrumentation::{Metrics, metrics};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, SpanKind, TraceId, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The metrics of all components that are created while this lives, and the spans of this thread.
///
/// The metrics are those of the process, so tests that record wait for each other. Spans are recorded as
/// the programs do: root spans at the level info, and others at the level debug inside another span.
#[derive(Debug)]
pub struct RecordedTelemetry {
    tracers: SdkTracerProvider,
    spans: Shared<RecordedSpan>,
    _subscriber: tracing::subscriber::DefaultGuard,
    _alone: MutexGuard<'static, ()>,
}

type Shared<Item> = Arc<Mutex<Vec<Item>>>;
type Labels = BTreeMap<String, String>;

/// The current value of a metric with one set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in Prometheus.
    pub name: String,
    /// The labels that are present.
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

impl RecordedTelemetry {
    /// Starts to record. Waits until no other test records.
    #[must_use]
    pub fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        metrics().reset();
        let spans = Shared::default();
        let tracers =
            SdkTracerProvider::builder().with_simple_exporter(SpanRecorder(Arc::clone(&spans))).build();
        let subscriber = tracing::subscriber::set_default(
            tracing_subscriber::registry().with(recording_layer(tracers.tracer("tests"))),
        );
        Self { tracers, spans, _subscriber: subscriber, _alone: alone }
    }

    /// All series of all metrics.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        series(metrics())
    }

    /// The sum of the series of a metric that have all of these labels, rounded; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "tests count to small numbers")]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<i64> {
        let series = self.series().into_iter().filter(|series| series.is(name, labels));
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

/// All series of these metrics, as Prometheus scrapes them.
#[must_use]
pub fn series(metrics: &Metrics) -> Vec<Series> {
    let text = metrics.text().expect("valid names");
    let histograms: Vec<_> = Metrics::TABLE.iter().filter(|row| row.kind == "histogram").collect();
    let samples = text.lines().filter(|line| !line.starts_with('#')).map(Series::parse);
    let counts_only = |mut series: Series| {
        let Some(row) = histograms.iter().find(|row| series.name.starts_with(row.name)) else {
            return Some(series);
        };
        let is_count = series.name.ends_with("_count");
        series.name.truncate(row.name.len());
        is_count.then_some(series)
    };
    samples.filter_map(counts_only).collect()
}

impl Series {
    /// Whether the metric has this name, and all of these labels.
    #[must_use]
    pub fn is(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let has = |(label, value): &(&str, &str)| self.labels.get(*label).is_some_and(|has| has == value);
        self.name == name && labels.iter().all(has)
    }

    /// Reads a line of the text format. No value of a label contains a quotation mark.
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.trim_end_matches('}').split("\",").filter(|label| !label.is_empty());
        let label = |label: &str| {
            let (label, value) = label.split_once("=\"").expect("a value");
            (label.to_owned(), value.trim_end_matches('"').to_owned())
        };
        let value = value.parse().expect("a number");
        Self { name: name.to_owned(), labels: labels.map(label).collect(), value }
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
