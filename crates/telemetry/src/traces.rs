//! The tracer provider, and which spans become spans of OpenTelemetry.

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanExporter,
};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::{self, Filter};
use tracing_subscriber::registry::LookupSpan;

use crate::counted_exporter::{BoundedProcessor, CountedExporter, ExportState};

/// Maximum spans that wait to be exported, about 2 MB. Further ones are dropped.
const MAX_PENDING_SPANS: usize = 2_048;

/// The targets of the workspace's spans.
const TARGET_PREFIX: &str = "chart_index";

/// A provider that pushes spans with this exporter.
pub(crate) fn provider(
    resource: Resource,
    exporter: impl SpanExporter + 'static,
    state: ExportState,
) -> SdkTracerProvider {
    let config = BatchConfigBuilder::default().with_max_queue_size(MAX_PENDING_SPANS).build();
    let batches = BatchSpanProcessor::builder(CountedExporter::new(exporter, state.clone()));
    let processor = batches.with_batch_config(config).build();
    SdkTracerProvider::builder()
        .with_resource(resource)
        // A span exists only if it was sampled.
        .with_sampler(Sampler::AlwaysOn)
        .with_span_processor(BoundedProcessor { processor, state, max_pending: MAX_PENDING_SPANS })
        .build()
}

/// Enables the spans that the instrumentation describes: root spans, at the level info, whenever they are
/// created; all others, at the level debug, only inside another span.
pub(crate) fn span_filter<S>() -> impl Filter<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    dynamic_filter_fn(|metadata: &Metadata<'_>, context: &layer::Context<'_, S>| {
        is_span(metadata) && (*metadata.level() == Level::INFO || context.lookup_current().is_some())
    })
    .with_callsite_filter(|metadata| {
        use tracing::subscriber::Interest;
        if !is_span(metadata) {
            Interest::never()
        } else if *metadata.level() == Level::INFO {
            Interest::always()
        } else {
            Interest::sometimes()
        }
    })
    .with_max_level_hint(LevelFilter::DEBUG)
}

fn is_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with(TARGET_PREFIX) && *metadata.level() <= Level::DEBUG
}
