//! Cross-origin reads: any origin, GET and HEAD, no credentials (decisions, "CORS and headers").
//!
//! Written out rather than taken from tower-http, whose layer answers every OPTIONS request as if it were a
//! preflight, on paths that do not exist and instead of the 405 of those that do. The headers are the same for
//! every origin, so an answer that may be shared needs no `Vary: Origin`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::NoBody;
use crate::host;

/// The headers of an answer that a script of another origin may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Retry-After, RateLimit, RateLimit-Policy, Content-Disposition, X-Search-Engine, X-Request-Id",
);

/// Answers preflights of any path, and lets any origin read every other answer, errors included.
pub(crate) async fn allow_any_origin(request: Request, next: Next) -> Response {
    let mut response = if is_preflight(&request) { preflight() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    response
}

/// A CORS preflight, as the Fetch standard defines it; any other OPTIONS request is an ordinary one,
/// as is a malformed one.
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && host::check(request).is_ok()
}

fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers, Body::new(NoBody)).into_response()
}
