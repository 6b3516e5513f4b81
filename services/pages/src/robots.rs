//! `GET /robots.txt`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use chart_index_http::{CachePolicy, MediaType, RequestHeaders, TextBody};

use crate::PagesState;

/// Pages of sets and charts may be indexed, and the list by its first parameters. Random choices, feeds,
/// redirects and ROX files are not for crawlers.
const RULES: &str = "User-agent: *\nDisallow: /random\nDisallow: /feed.atom\nDisallow: /go/\nDisallow: /api/\nDisallow: /*?*&*&\n";

/// `GET /robots.txt`.
pub(crate) async fn robots(State(_): State<Arc<PagesState>>, headers: RequestHeaders) -> Response {
    TextBody::new(RULES).into_response(&headers, CachePolicy::Page, MediaType::Plain)
}
