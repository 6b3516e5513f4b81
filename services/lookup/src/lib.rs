//! The lookup service: where a chart can be downloaded, and the chart in the ROX format.

mod handlers;
mod rox_file;
mod wire;

use axum::Router;
use axum::routing::get;
use chart_index_store::Store;

/// What the handlers of this service work on.
#[derive(Debug, Clone)]
pub struct LookupState {
    /// The catalogue.
    pub store: Store,
}

/// The routes of the service.
pub fn router(state: LookupState) -> Router {
    Router::new()
        .route("/api/charts/{hash}", get(handlers::chart))
        .route("/api/charts/{hash}/rox", get(handlers::rox))
        .with_state(state)
}

#[cfg(test)]
mod tests;
