//! The lookup service: the sources of a chart, its ROX file and its preview.

mod handlers;
mod lookup_body;
mod openapi;
mod rox_response;

use std::sync::Arc;

use axum::routing::get;
use chart_index_http::{ResponseCache, Routes};
use chart_index_ratelimit::Group;
use chart_index_store::Store;
use utoipa::OpenApi;

use crate::lookup_body::LookupBody;
use crate::openapi::ChartPreview;

/// The state of the handlers.
#[derive(Debug)]
pub struct LookupState {
    /// The catalogue.
    pub store: Store,
    /// The rate limits and the response cache.
    pub cache: ResponseCache,
}

/// The routes of the service.
pub fn routes(state: LookupState) -> Routes {
    Routes::new(state.cache.rate_limiter())
        .route(Group::Lookup, "/api/charts/{hash}", get(handlers::chart))
        .route(Group::Rox, "/api/charts/{hash}/rox", get(handlers::rox))
        .route(Group::Detail, "/api/charts/{hash}/preview", get(handlers::preview))
        .with_state(Arc::new(state))
}

/// The operations of the routes. `utoipa-axum` would collect them while it builds an `axum::Router`; [`Routes`] is a table of its
/// own. A test of the pages compares both.
#[derive(OpenApi)]
#[openapi(
    paths(handlers::chart, handlers::rox, handlers::preview),
    components(schemas(LookupBody<'static>, ChartPreview))
)]
struct Document;

/// The OpenAPI document of this service: its operations and schemas.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

#[cfg(test)]
mod tests;
