//! The lookup service: where a chart can be downloaded, and the chart in the ROX format.

mod handlers;
mod rox_file;
mod wire;

use axum::Router;
use axum::routing::get;
use chart_index_http::ResponseCache;
use chart_index_ratelimit::Group;
use chart_index_store::Store;

/// What the handlers of this service work on.
#[derive(Debug, Clone)]
pub struct LookupState {
    /// The catalogue.
    pub store: Store,
    /// The rate limits and the cached responses.
    pub cache: ResponseCache,
}

/// The routes of the service, each group with its limit.
pub fn router(state: LookupState) -> Router {
    let charts = Router::new().route("/api/charts/{hash}", get(handlers::chart));
    let rox_files = Router::new().route("/api/charts/{hash}/rox", get(handlers::rox));
    let cache = &state.cache;
    cache.limit(Group::Lookup, charts).merge(cache.limit(Group::Rox, rox_files)).with_state(state)
}

#[cfg(test)]
mod tests;
