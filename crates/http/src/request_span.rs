//! The id and the tracing span of each request.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::{Instrument, field};

/// Carries the id of a request, in the response and optionally in the request.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a client or proxy.
const MAX_ID_BYTES: usize = 128;

/// Handles the request in a tracing span and adds its id to the response.
///
/// The span records the route pattern. It records neither path, query nor client address.
pub(crate) async fn in_span(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id =
        request.headers().get(X_REQUEST_ID).filter(|id| is_valid(id)).cloned().unwrap_or_else(generate_id);
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
    // At debug level: a line per request costs more than most requests do.
    span.in_scope(|| tracing::debug!("request handled"));
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

/// Whether an id from a request is safe to log.
fn is_valid(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// Generates an id: a counter hashed with two random keys, so that ids do not reveal the number of requests.
fn generate_id() -> HeaderValue {
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
    fn only_short_and_plain_ids_are_accepted() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for (id, valid) in [
            ("4bf92f35-77b3.4da6_a3ce", true),
            (longest.as_str(), true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("é", false),
            (&format!("{longest}x"), false),
        ] {
            assert_eq!(is_valid(&HeaderValue::from_str(id).unwrap()), valid, "{id:?}");
        }
    }

    #[test]
    fn generated_ids_are_valid_and_unique() {
        let ids: HashSet<HeaderValue> = (0..1000).map(|_| generate_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(is_valid));
    }
}
