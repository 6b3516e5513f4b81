//! The browse service: the list of chartsets, one chartset, and the redirect to where it is published.

mod handlers;
mod source_pages;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use chart_index_domain::search::SearchIndex;
use chart_index_http::RateLimiting;
use chart_index_ratelimit::Group;
use chart_index_store::Store;

pub use source_pages::{InvalidSourcePage, SourcePage, SourcePages};

/// What the handlers of this service work on.
#[derive(Clone)]
pub struct BrowseState {
    /// The engine that lists chartsets.
    pub search: Arc<dyn SearchIndex>,
    /// The catalogue.
    pub store: Store,
    /// Where the sources have their pages.
    pub source_pages: SourcePages,
}

/// The routes of the service, each group with its limit.
pub fn router(state: BrowseState, limiting: &RateLimiting) -> Router {
    let list = Router::new().route("/api/chartsets", get(handlers::list));
    let detail = Router::new()
        .route("/api/chartsets/{id}", get(handlers::detail))
        .route("/go/chartset/{id}", get(handlers::redirect));
    limiting.limit(Group::List, list).merge(limiting.limit(Group::Detail, detail)).with_state(state)
}

#[cfg(test)]
mod tests;
