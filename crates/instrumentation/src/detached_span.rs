//! Child spans that may outlive their parent.

use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes the current span the parent of a span that may outlive it, such as that of work for several requests.
///
/// The span must have been created with `parent: None`: `tracing` keeps the parent of a span open, so the
/// parent would seem to take as long as the child. And it must not have been entered.
pub fn set_current_as_parent(span: &Span) {
    if !span.is_disabled() {
        // Fails only if the span is disabled or already started: then it has no parent.
        let _ = span.set_parent(Span::current().context());
    }
}
