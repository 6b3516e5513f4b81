//! The lookup service: the sources of a chart, and its ROX file.

mod handlers;
mod lookup_body;
mod rox_response;

use axum::Router;
use axum::routing::get;
use chart_index_http::ResponseCache;
use chart_index_ratelimit::Group;
use chart_index_store::Store;

/// The state of the handlers.
#[derive(Debug, Clone)]
pub struct LookupState {
    /// The catalogue.
    pub store: Store,
    /// The rate limits and the response cache.
    pub cache: ResponseCache,
}

/// The routes of the service, each group with its rate limit.
pub fn router(state: LookupState) -> Router {
    let charts = Router::new().route("/api/charts/{hash}", get(handlers::chart));
    let rox_files = Router::new().route("/api/charts/{hash}/rox", get(handlers::rox));
    let limiter = state.cache.rate_limiter();
    let charts = limiter.with_rate_limit(Group::Lookup, charts);
    let rox_files = limiter.with_rate_limit(Group::Rox, rox_files);
    charts.merge(rox_files).with_state(state)
}

#[cfg(test)]
mod tests;
