//! The endpoint `/metrics` of the private listener (docs/operations/metrics.md).

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, extract};
use chart_index_http::ApiError;
use chart_index_telemetry::Scrape;

/// The route: the metrics in the text format of Prometheus.
pub(crate) fn router(scrape: Scrape) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(scrape)
}

async fn metrics(extract::State(scrape): extract::State<Scrape>) -> Result<Response, ApiError> {
    let text = scrape.text().map_err(|error| ApiError::Internal(error.into()))?;
    Ok(([(CONTENT_TYPE, Scrape::CONTENT_TYPE)], text).into_response())
}
