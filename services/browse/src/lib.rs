//! The browse service: the list of chartsets, the detail of one, and the redirects to source pages.

mod handlers;
mod json_bodies;
mod metrics;
mod openapi;
mod random;
mod search_engines;

use std::sync::Arc;

use axum::routing::get;
use chart_index_domain::Chartset;
use chart_index_domain::search::{Direction, Sort};
use chart_index_http::{ResponseCache, Routes, SourcePages};
use chart_index_ratelimit::Group;
use chart_index_store::Store;
use utoipa::OpenApi;

use crate::json_bodies::{DetailBody, ListBody};
use crate::openapi::SourceFilter;

pub use random::choose_chartset;
pub use search_engines::{ListPage, ListRead, PageFormat, Search, SearchEngines};

/// What the handlers share.
pub struct BrowseState {
    /// The engines that list chartsets.
    pub engines: SearchEngines,
    /// For details and sources.
    pub store: Store,
    /// Caches responses.
    pub cache: ResponseCache,
    /// Where chartsets are redirected to.
    pub source_pages: SourcePages,
}

/// The routes of `/api/chartsets`, `/api/random` and `/go`.
pub fn routes(state: BrowseState) -> Routes {
    Routes::new()
        .route(Group::List, "/api/chartsets", get(handlers::list))
        .route(Group::List, "/api/random", get(random::random))
        .route(Group::Detail, "/api/chartsets/{id}", get(handlers::detail))
        .route(Group::Detail, "/go/chartset/{id}", get(handlers::redirect))
        .route(Group::Detail, "/go/chart/{hash}", get(handlers::redirect_chart))
        .with_state(Arc::new(state))
}

/// The operations of the routes. A test of the pages compares them with the routes.
#[derive(OpenApi)]
#[openapi(
    paths(handlers::list, handlers::detail, handlers::redirect, handlers::redirect_chart, random::random),
    components(schemas(ListBody<'static>, DetailBody<'static>, Chartset, Direction, Sort, SourceFilter))
)]
struct BrowseApi;

/// The OpenAPI document of this service: its operations and schemas.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    BrowseApi::openapi()
}
