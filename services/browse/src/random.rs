//! Random choices: any chartset that the filters of a list admit.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chart_index_domain::ChartsetId;
use chart_index_domain::search::{PageRequest, SearchQuery, parse_query_string};
use chart_index_http::{ApiError, CachePolicy, RequestHeaders, Resource, ResponseCache};
use serde::Deserialize;

use crate::openapi::{FilterParameters, RandomResponses};
use crate::search_engines::JsonFormat;
use crate::{BrowseState, ListRead, SearchEngines};

/// `GET /api/random`: redirects to the detail of any chartset that the filters admit.
#[utoipa::path(
    get,
    path = "/api/random",
    operation_id = "chooseChartset",
    tag = "Chartsets",
    params(FilterParameters),
    responses(RandomResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn random(
    State(state): State<Arc<BrowseState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = parse_query_string(&query.unwrap_or_default())?;
    let id = choose_chartset(&state.engines, &state.cache, &query).await?;
    let location = [(LOCATION, format!("/api/chartsets/{id}"))];
    Ok((StatusCode::SEE_OTHER, CachePolicy::NoStore, location).into_response())
}

/// Chooses a chartset of the list. Each is equally likely: the list with one chartset a page has any page.
///
/// # Errors
///
/// No chartset matches, or as for [`SearchEngines::read_page`].
pub async fn choose_chartset(
    engines: &SearchEngines,
    cache: &ResponseCache,
    query: &SearchQuery,
) -> Result<ChartsetId, ApiError> {
    let choose = async |number: u64| {
        let page = PageRequest::clamped(i64::try_from(number).unwrap_or(i64::MAX), 1);
        let query = SearchQuery { page, after: None, ..query.clone() };
        let read = ListRead { cache, headers: &RequestHeaders::default() };
        let page = engines.read_page(read, query, &Arc::new(JsonFormat)).await?;
        serde_json::from_slice::<Choice>(page.body.bytes()).map_err(|error| ApiError::Internal(error.into()))
    };
    let first = choose(1).await?;
    let number = fastrand::u64(1..=first.total.max(1));
    let chosen = if number == 1 { first } else { choose(number).await? };
    let chosen = chosen.items.first().ok_or(ApiError::NotFound(Resource::AnyChartset))?;
    Ok(chosen.id)
}

/// What a list with at most one chartset says of it.
#[derive(Deserialize)]
struct Choice {
    total: u64,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: ChartsetId,
}
