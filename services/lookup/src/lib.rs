//! The lookup service: where a chart can be downloaded, and the chart in the ROX format.

mod handlers;
mod rox_file;
mod wire;

use axum::Router;
use axum::routing::get;
use chart_index_http::Answers;
use chart_index_ratelimit::Group;
use chart_index_store::Store;

/// What the handlers of this service work on.
#[derive(Debug, Clone)]
pub struct LookupState {
    /// The catalogue.
    pub store: Store,
    /// The limits, and what is kept of finished answers.
    pub answers: Answers,
}

/// The routes of the service, each group with its limit.
pub fn router(state: LookupState) -> Router {
    let charts = Router::new().route("/api/charts/{hash}", get(handlers::chart));
    let rox_files = Router::new().route("/api/charts/{hash}/rox", get(handlers::rox));
    let answers = &state.answers;
    answers.limit(Group::Lookup, charts).merge(answers.limit(Group::Rox, rox_files)).with_state(state)
}

#[cfg(test)]
mod tests;
