//! The pages for authors of clients: the API reference, the formats, the OpenAPI document, and what each
//! problem means.
//!
//! Their words are those of docs/api.md and docs/formats, which are embedded: the pages and the documents
//! cannot differ. All of it is rendered once, when the service starts, apart from the links of `/docs` to
//! charts of the instance.

mod changelog;
mod docs_page;
mod handlers;
mod live_links;
mod markdown;
mod note_hash_vectors;
mod openapi;
mod openapi_3_0;
mod openapi_words;
mod problem_pages;
mod reference;
mod requests;
mod search;
mod snippets;

use std::sync::Arc;

use axum::routing::get;
use chart_index_http::Routes;
use chart_index_ratelimit::Group;

use crate::PagesState;
use handlers::ApiDocs;

/// The routes of these pages.
pub(crate) fn routes(state: &Arc<PagesState>) -> Routes {
    Routes::new()
        .route(Group::Page, "/docs", get(handlers::live))
        .route(Group::Page, "/docs/openapi.json", get(handlers::document))
        .route(Group::Page, "/docs/openapi-3.0.json", get(handlers::document))
        .route(Group::Page, "/docs/changelog.atom", get(handlers::document))
        .route(Group::Page, "/docs/api/{section}", get(handlers::live))
        .route(Group::Page, "/docs/all", get(handlers::document))
        .route(Group::Page, "/docs/search", get(handlers::search))
        .route(Group::Page, "/docs/{format}", get(handlers::document))
        .route(Group::Page, "/docs/{format}/vectors.json", get(handlers::document))
        .route(Group::Page, "/problems/{slug}", get(handlers::document))
        .with_state(Arc::new(ApiDocs::new(Arc::clone(state))))
}

/// The paths of the pages, for sitemaps.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    let api = reference::api().sections.iter().filter(|section| !reference::is_in_overview(section.heading));
    let sections = api.map(|section| format!("/docs/api/{}", reference::anchor(section.heading)));
    reference::DOCUMENTS.iter().map(|document| document.path.to_owned()).chain(sections)
}

#[cfg(test)]
mod tests;
