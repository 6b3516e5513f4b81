//! The span of the caller, which `traceparent` names (W3C Trace Context).

use opentelemetry::Context;
use opentelemetry::global;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The headers of W3C Trace Context.
const HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// The span of the caller of a request. Only to be read from a request of a trusted proxy: any other client
/// could decide what is sampled.
#[derive(Debug, Clone)]
pub struct RemoteParent(SpanContext);

impl RemoteParent {
    /// Reads the headers `traceparent` and `tracestate`, which `header` returns; `None` without a valid
    /// `traceparent`.
    pub fn extract<'h>(header: impl Fn(&'static str) -> Option<&'h str>) -> Option<Self> {
        let headers = Headers(HEADERS.map(|name| (name, header(name))));
        headers.0[0].1?;
        let context = global::get_text_map_propagator(|propagator| {
            propagator.extract_with_context(&Context::new(), &headers)
        });
        let parent = context.span().span_context().clone();
        parent.is_valid().then_some(Self(parent))
    }

    /// Whether the caller samples its span.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.0.is_sampled()
    }

    /// Makes the span of the caller the parent of a root span that has not been entered yet.
    pub fn set_on(self, span: &Span) {
        // Fails only if the span is disabled or already started: then it has no parent.
        let _ = span.set_parent(Context::new().with_remote_span_context(self.0));
    }
}

struct Headers<'h>([(&'static str, Option<&'h str>); 2]);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key).and_then(|(_, value)| *value)
    }

    fn keys(&self) -> Vec<&str> {
        HEADERS.to_vec()
    }
}
