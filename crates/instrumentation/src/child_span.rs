//! Spans inside other spans.

use tracing::Span;

/// The span that this function creates if there is a current one, else none.
///
/// What is not sampled has no span, and so nothing in it should have one. Filters cannot ensure that by
/// themselves: the registry of `tracing-subscriber` stores a span even if the filters of all layers reject it,
/// unless they reject all spans of its kind.
pub fn child_span(create: impl FnOnce() -> Span) -> Span {
    if Span::current().is_none() { Span::none() } else { create() }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;
    use tracing::{debug_span, info_span};
    use tracing_subscriber::Registry;

    use super::*;
    use crate::DatabaseClient;

    #[test]
    fn spans_are_created_only_inside_others() {
        let operation = DatabaseClient::new("redis").operation("GET");
        with_default(Registry::default(), || {
            assert!(child_span(|| debug_span!("child")).is_none());
            assert!(operation.span().is_none());
            info_span!("root").in_scope(|| {
                assert!(!child_span(|| debug_span!("child")).is_none());
                assert!(!operation.span().is_none());
            });
        });
    }
}
