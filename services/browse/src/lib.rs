//! The browse service: the list of chartsets, one chartset, and the redirect to where it is published.

mod handlers;
mod listing;
mod source_pages;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use chart_index_domain::search::SearchIndex;
use chart_index_http::Answers;
use chart_index_ratelimit::Group;
use chart_index_store::{CatalogueWatch, Store};

pub use source_pages::{InvalidSourcePage, SourcePage, SourcePages};

/// What the handlers of this service work on.
pub struct BrowseState {
    /// The engine that lists chartsets.
    pub search: Arc<dyn SearchIndex>,
    /// The engine that lists them while that one cannot.
    pub stand_in: Option<Arc<dyn SearchIndex>>,
    /// The catalogue.
    pub store: Store,
    /// The generation of the catalogue, under which details are kept.
    pub watch: CatalogueWatch,
    /// The limits, and what is kept of finished answers.
    pub answers: Answers,
    /// Where the sources have their pages.
    pub source_pages: SourcePages,
}

/// The routes of the service, each group with its limit.
pub fn router(state: BrowseState) -> Router {
    let list = Router::new().route("/api/chartsets", get(handlers::list));
    let detail = Router::new()
        .route("/api/chartsets/{id}", get(handlers::detail))
        .route("/go/chartset/{id}", get(handlers::redirect));
    let answers = &state.answers;
    answers.limit(Group::List, list).merge(answers.limit(Group::Detail, detail)).with_state(Arc::new(state))
}

#[cfg(test)]
mod tests;
