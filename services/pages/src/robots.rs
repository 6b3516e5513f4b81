//! What browsers and crawlers ask of a site: `GET /robots.txt`, `/opensearch.xml` and `/favicon.ico`.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chart_index_http::{ApiError, CachePolicy, MediaType, NoBody, RequestHeaders, Resource, TextBody};

use crate::PagesState;
use crate::render::render;

/// Pages of sets and charts may be indexed, and the list by its first parameters. Random choices, histograms,
/// feeds, redirects and ROX files are not for crawlers.
const RULES: &str = "User-agent: *\nDisallow: /random\nDisallow: /ratings\nDisallow: /feed.atom\nDisallow: /go/\nDisallow: /api/\nDisallow: /*?*&*&\n";

/// `GET /robots.txt`.
pub(crate) async fn robots(State(state): State<Arc<PagesState>>, headers: RequestHeaders) -> Response {
    let public_url = state.settings.public_url.as_ref();
    let sitemap = public_url.map(|url| format!("Sitemap: {}/sitemap.xml\n", url.as_str()));
    let text = format!("{RULES}{}", sitemap.unwrap_or_default());
    TextBody::new(text).into_response(&headers, CachePolicy::Page, MediaType::Plain)
}

#[derive(Template)]
#[template(path = "opensearch.xml", whitespace = "minimize")]
struct OpenSearchTemplate<'a> {
    public_url: &'a str,
}

/// `GET /opensearch.xml`: the search of the site for the address bar of a browser (`OpenSearch` 1.1), if the
/// public URL is known.
pub(crate) async fn open_search(
    State(state): State<Arc<PagesState>>,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let public_url = state.settings.public_url.as_ref().ok_or(ApiError::NotFound(Resource::Endpoint))?;
    let xml = render(&OpenSearchTemplate { public_url: public_url.as_str() })?;
    Ok(TextBody::new(xml).into_response(&headers, CachePolicy::Page, MediaType::Xml))
}

/// `GET /favicon.ico`: nothing. The icon is in the pages, and no response has an image type.
pub(crate) async fn favicon() -> Response {
    (StatusCode::NO_CONTENT, CachePolicy::Redirect, Body::new(NoBody)).into_response()
}
