//! The identity and the span of a request.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::{Instrument, field};

/// The header in which a request brings its id, or is told it.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a client or proxy.
const MAX_ID_BYTES: usize = 128;

/// Runs the request in a span of its own and sends its id back.
///
/// The span has the route as it is written in the route table. The address itself, with its query, and the
/// client's address are not in it.
pub(crate) async fn in_span(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request.headers().get(X_REQUEST_ID).filter(|id| is_sane(id)).cloned().unwrap_or_else(make_id);
    let span = tracing::info_span!(
        "request",
        request_id = id.to_str().unwrap_or_default(),
        method = %request.method(),
        route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str),
        status = field::Empty,
        latency_ms = field::Empty,
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    span.record("latency_ms", started.elapsed().as_secs_f64() * 1000.0);
    // A line for every request costs more than most requests do: it is for looking closely.
    span.in_scope(|| tracing::debug!("request answered"));
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

/// Whether an id that came with a request can be written to a log as it is.
fn is_sane(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// A new id: a count under two random keys of this process, so that it tells nothing of how many went before.
fn make_id() -> HeaderValue {
    static KEYS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:016x}{:016x}", KEYS.0.hash_one(count), KEYS.1.hash_one(count));
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_taken_over_only_when_it_is_short_and_plain() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for (id, sane) in [
            ("4bf92f35-77b3.4da6_a3ce", true),
            (longest.as_str(), true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("é", false),
            (&format!("{longest}x"), false),
        ] {
            assert_eq!(is_sane(&HeaderValue::from_str(id).unwrap()), sane, "{id:?}");
        }
    }

    #[test]
    fn made_ids_are_sane_and_differ() {
        let ids: HashSet<HeaderValue> = (0..1000).map(|_| make_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(is_sane));
    }
}
