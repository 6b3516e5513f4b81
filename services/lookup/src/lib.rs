//! The lookup service: the sources of a chart, and its ROX file.

mod handlers;
mod lookup_body;
mod rox_response;

use std::sync::Arc;

use axum::routing::get;
use chart_index_http::{ResponseCache, Routes};
use chart_index_ratelimit::Group;
use chart_index_store::Store;

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
        .with_state(Arc::new(state))
}

#[cfg(test)]
mod tests;
