//! `/api/charts/filter`: the hash filter, which `chart-indexer` builds (docs/api.md, "Hash filter").

mod cached_filters;
mod openapi;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chart_index_http::openapi::Conditional;
use chart_index_http::{ApiError, CachePolicy, PathParam, RequestHeaders, Resource, Routes, not_modified};
use chart_index_ratelimit::Group;

use self::cached_filters::CachedFilters;
use self::openapi::{FilterResponses, RedirectResponses, SequenceParameter};
use crate::BulkOptions;

pub(crate) fn routes(options: &BulkOptions) -> Routes {
    let filters = CachedFilters::new(options.store.clone(), options.background.clone());
    Routes::new()
        .route(Group::Bulk, "/api/charts/filter", get(latest))
        .route(Group::Bulk, "/api/charts/filter/{sequence}", get(filter))
        .with_state(Arc::new(filters))
}

/// `GET /api/charts/filter`: redirects to the last filter.
#[utoipa::path(
    get,
    path = "/api/charts/filter",
    operation_id = "goToHashFilter",
    tag = "Bulk",
    responses(RedirectResponses),
    extensions(("x-extension" = json!(true)))
)]
async fn latest(State(filters): State<Arc<CachedFilters>>) -> Result<Response, ApiError> {
    let sequence = filters.read_latest().await?.ok_or(ApiError::NotFound(Resource::HashFilter))?;
    let location = [(LOCATION, format!("/api/charts/filter/{sequence}"))];
    Ok((StatusCode::FOUND, CachePolicy::LatestRedirect, location).into_response())
}

/// `GET /api/charts/filter/{sequence}`. Never content-encoded: the bytes cannot be compressed.
#[utoipa::path(
    get,
    path = "/api/charts/filter/{sequence}",
    operation_id = "getHashFilter",
    tag = "Bulk",
    params(SequenceParameter, Conditional),
    responses(FilterResponses),
    extensions(("x-extension" = json!(true)))
)]
async fn filter(
    State(filters): State<Arc<CachedFilters>>,
    PathParam(sequence): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let not_found = || ApiError::NotFound(Resource::HashFilter);
    let sequence = parse_sequence(&sequence).ok_or_else(not_found)?;
    let filter = filters.get(sequence).await?.ok_or_else(not_found)?;
    if headers.matches(&filter.tag) {
        return Ok(not_modified(&filter.tag, CachePolicy::HashFilter));
    }
    let headers = [(CONTENT_TYPE, "application/octet-stream".to_owned()), (ETAG, filter.tag.to_string())];
    Ok((CachePolicy::HashFilter, headers, Body::from(filter.bytes)).into_response())
}

/// A sequence in the form of the redirect, so that each filter has one address.
fn parse_sequence(text: &str) -> Option<u64> {
    let sequence: u64 = text.parse().ok()?;
    (sequence.to_string() == text).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_has_one_form() {
        for (text, expected) in [
            ("0", Some(0)),
            ("42", Some(42)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("042", None),
            ("+42", None),
            ("-1", None),
            ("4.2", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(parse_sequence(text), expected, "{text:?}");
        }
    }
}
