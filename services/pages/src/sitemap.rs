//! `GET /sitemap.xml` and its parts: the pages for search engines (sitemaps.org), if the public URL is known.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::{Entity, ReadError};
use chart_index_http::{ApiError, CachePolicy, MediaType, PathParam, RequestHeaders, Resource};

use crate::render::render;
use crate::{PagesState, api_docs, format};

/// The part with the pages that are not in the catalogue.
const OTHER_PAGES: &str = "pages";

#[derive(Template)]
#[template(path = "sitemap.xml", whitespace = "minimize")]
struct SitemapTemplate<'a> {
    /// The root element: `sitemapindex` or `urlset`.
    root: &'static str,
    /// The element of an entry: `sitemap` or `url`.
    element: &'static str,
    public_url: &'a str,
    entries: Vec<Entry>,
}

struct Entry {
    path: String,
    /// When it last changed, as RFC 3339; empty if that is not known.
    changed: String,
}

impl Entry {
    fn new(path: String, changed_at_ms: i64) -> Self {
        Self { path, changed: format::rfc3339(changed_at_ms) }
    }

    fn without_time(path: impl Into<String>) -> Self {
        Self { path: path.into(), changed: String::new() }
    }
}

/// `GET /sitemap.xml`: the index of the parts.
pub(crate) async fn index(
    State(state): State<Arc<PagesState>>,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let fill = async move |state: Arc<PagesState>| read_index(&state).await;
    let body = state.read(b"sitemap index", Resource::Endpoint, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Xml))
}

/// `GET /sitemaps/{part}.xml`.
pub(crate) async fn part(
    State(state): State<Arc<PagesState>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let part = name.strip_suffix(".xml").unwrap_or_default();
    let number = part.parse::<u64>().ok().filter(|number| number.to_string() == part);
    if number.is_none() && part != OTHER_PAGES {
        return Err(ApiError::NotFound(Resource::Endpoint));
    }
    let name = format!("sitemap {part}");
    let fill = async move |state: Arc<PagesState>| read_part(&state, number).await;
    let body = state.read(name.as_bytes(), Resource::Endpoint, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Xml))
}

async fn read_index(state: &PagesState) -> Result<Option<String>, ReadError> {
    let parts = state.store.sitemap_parts().await?;
    let path = |name: &str| format!("/sitemaps/{name}.xml");
    let of_catalogue =
        parts.iter().map(|part| Entry::new(path(&part.number.to_string()), part.changed_at_ms));
    let entries = std::iter::once(Entry::without_time(path(OTHER_PAGES))).chain(of_catalogue).collect();
    sitemap(state, "sitemapindex", "sitemap", entries)
}

async fn read_part(state: &PagesState, number: Option<u64>) -> Result<Option<String>, ReadError> {
    let entries = match number {
        None => other_pages().map(Entry::without_time).collect(),
        Some(number) => {
            let changed = state.store.sitemap_part(number).await?;
            changed
                .into_iter()
                .map(|(entity, changed_at_ms)| Entry::new(path(entity), changed_at_ms))
                .collect()
        }
    };
    sitemap(state, "urlset", "url", entries)
}

fn path(entity: Entity) -> String {
    match entity {
        Entity::Chart(hash) => format!("/charts/{hash}"),
        Entity::Chartset(id) => format!("/chartsets/{id}"),
    }
}

fn other_pages() -> impl Iterator<Item = String> {
    ["/", "/identify", "/about"].into_iter().map(str::to_owned).chain(api_docs::paths())
}

/// The sitemap, unless it has no entries or no absolute URLs, which a sitemap needs.
fn sitemap(
    state: &PagesState,
    root: &'static str,
    element: &'static str,
    entries: Vec<Entry>,
) -> Result<Option<String>, ReadError> {
    let public_url = state.site();
    if entries.is_empty() || public_url.is_empty() {
        return Ok(None);
    }
    render(&SitemapTemplate { root, element, public_url, entries }).map(Some)
}
