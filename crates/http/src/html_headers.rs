//! The headers of all HTML responses: what browsers may do with them.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

/// The media type of pages.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// Scripts and styles come from this origin and are never inline, so markup in a name cannot run.
macro_rules! policy {
    ($frame_ancestors:literal) => {
        HeaderValue::from_static(concat!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors ",
            $frame_ancestors
        ))
    };
}

const POLICY: HeaderValue = policy!("'none'");
const POLICY_OF_FRAMES: HeaderValue = policy!("*");

/// A site that a link leads to is sent the origin, not the path with the search.
const REFERRER: HeaderValue = HeaderValue::from_static("strict-origin-when-cross-origin");

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Lets pages of other sites show a response with HTML in a frame.
pub(crate) fn allow_frames(response: &mut Response) {
    if is_html(response) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY_OF_FRAMES);
    }
}

fn is_html(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|value| *value == HTML)
}

/// Adds the headers to a response with HTML.
pub(crate) fn add(mut response: Response) -> Response {
    if is_html(&response) {
        let headers = response.headers_mut();
        headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
        headers.insert(REFERRER_POLICY, REFERRER);
        headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    }
    response
}
