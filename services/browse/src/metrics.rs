//! The metrics and spans of searches (docs/operations/metrics.md).

use chart_index_domain::ReadError;
use chart_index_domain::search::Engine;
use chart_index_instrumentation::{Counter, child_span, metrics};
use strum::IntoStaticStr;
use tracing::Instrument;

/// Whether an engine is searched first or after another one failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum Role {
    /// The engine that is searched first.
    Primary,
    /// The engine for pages that the primary one cannot return.
    Fallback,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
enum SearchOutcome {
    Success,
    /// The engine was unavailable or too slow.
    Unavailable,
    /// The engine cannot run the query.
    Unsupported,
    /// The engine failed.
    Error,
}

impl SearchOutcome {
    const fn new<T>(result: &Result<T, ReadError>) -> Self {
        match result {
            Ok(_) => Self::Success,
            Err(ReadError::Unavailable { .. }) => Self::Unavailable,
            Err(ReadError::Unsupported { .. }) => Self::Unsupported,
            Err(ReadError::Failed { .. }) => Self::Error,
        }
    }
}

/// In the order of their declaration.
const ENGINES: [Engine; 2] = [Engine::Meilisearch, Engine::Postgres];

/// Counts searches and list responses by engine.
#[derive(Debug)]
pub(crate) struct SearchMetrics {
    requests: [[Counter; 4]; 2],
    responses: [[Counter; 2]; 2],
}

impl Default for SearchMetrics {
    fn default() -> Self {
        use SearchOutcome::{Error, Success, Unavailable, Unsupported};
        let (requests, responses) =
            (&metrics().chart_index_search_requests_total, &metrics().chart_index_search_responses_total);
        Self {
            requests: ENGINES.map(|engine| {
                [Success, Unavailable, Unsupported, Error]
                    .map(|outcome| requests.with([engine.as_str(), outcome.into_str()]))
            }),
            responses: ENGINES.map(|engine| {
                [Role::Primary, Role::Fallback].map(|role| responses.with([engine.as_str(), role.into_str()]))
            }),
        }
    }
}

impl SearchMetrics {
    /// Runs a search in a span and counts it. One that is dropped before its end was too slow.
    pub(crate) async fn observe<T>(
        &self,
        engine: Engine,
        search: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let span =
            child_span(|| tracing::debug_span!("search", "chart_index.search.engine" = engine.as_str()));
        let counters = &self.requests[engine as usize];
        let mut count = CountOnDrop { counters, outcome: SearchOutcome::Unavailable };
        let result = if span.is_disabled() { search.await } else { search.instrument(span).await };
        count.outcome = SearchOutcome::new(&result);
        result
    }

    /// Counts a response with a page of this engine.
    pub(crate) fn count_response(&self, engine: Engine, role: Role) {
        self.responses[engine as usize][role as usize].inc();
    }
}

struct CountOnDrop<'a> {
    counters: &'a [Counter; 4],
    outcome: SearchOutcome,
}

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.counters[self.outcome as usize].inc();
    }
}
