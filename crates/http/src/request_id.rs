//! The id of each request.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use chart_index_domain::hex;

/// Carries the id of a request, in the response and optionally in a request of a trusted proxy.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted from a proxy.
const MAX_ID_BYTES: usize = 128;

/// The id that a request of a trusted proxy brings, if it is safe to log, else a new one: clients could give
/// many requests the same id.
pub(crate) fn accept_or_generate(request: &Request, is_trusted: impl Fn() -> bool) -> HeaderValue {
    let id = request.headers().get(X_REQUEST_ID).filter(|id| is_valid(id) && is_trusted());
    id.cloned().unwrap_or_else(generate_id)
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
    let id = u128::from(KEYS.0.hash_one(count)) << 64 | u128::from(KEYS.1.hash_one(count));
    let mut digits = [0; 32];
    let id = hex::encode(&id.to_be_bytes(), &mut digits);
    HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
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
