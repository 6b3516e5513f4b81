//! CORS: any origin may send every request of the API, without credentials (docs/api.md, "CORS").
//!
//! Not tower-http's `CorsLayer`, which treats every OPTIONS request as a preflight, even for unknown paths and
//! instead of a 405. The headers are the same for every origin, so shared caches need no `Vary: Origin`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::text_body::NoBody;
use crate::{AllowedMethods, host_header};

/// The response headers that scripts of other origins may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Retry-After, RateLimit, RateLimit-Policy, Content-Disposition, Content-Range, Accept-Ranges, \
     X-Search-Engine, X-Request-Id",
);

/// Allows any origin to read a response.
pub(crate) fn allow_any_origin(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    response
}

/// Whether this is a CORS preflight as defined by the Fetch standard. Other OPTIONS requests, and those without
/// a valid `Host`, are handled like any request.
pub(crate) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && host_header::check(request).is_ok()
}

/// The response to a preflight of a resource with these methods; `None` if the request is none.
pub(crate) fn preflight(request: &Request, allowed: AllowedMethods) -> Option<Response> {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, allowed.as_str()),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    is_preflight(request).then(|| (StatusCode::NO_CONTENT, headers, Body::new(NoBody)).into_response())
}
