//! Random choices: any chartset that the filters of a list admit.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, Filled};
use chart_index_domain::search::{PageRequest, SearchQuery};
use chart_index_domain::{ChartsetId, ReadError};
use chart_index_http::{ApiError, CachePolicy, RequestHeaders, Resource, ResponseCache, TextBody};
use serde::Deserialize;

use crate::handlers::ListQueryParams;
use crate::openapi::{FilterParameters, RandomResponses};
use crate::{BrowseState, ListRead, PageFormat, Search, SearchEngines};

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
    ListQueryParams(query): ListQueryParams,
) -> Result<Response, ApiError> {
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
        let page = engines.read_page(read, query, &Arc::new(ChoiceFormat)).await?;
        Ok::<_, ApiError>(Choice::parse(page.body.bytes()))
    };
    let first = choose(1).await?;
    let number = fastrand::u64(1..=first.total.max(1));
    let chosen = if number == 1 { first } else { choose(number).await? };
    chosen.id.ok_or(ApiError::NotFound(Resource::AnyChartset))
}

/// A chartset of the list by its position.
struct Choice {
    total: u64,
    id: Option<ChartsetId>,
}

impl Choice {
    /// Reads `<total> <id>`.
    fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (total, id) = text.split_once(' ').unwrap_or((&text, ""));
        Self { total: total.parse().unwrap_or(0), id: id.parse().ok() }
    }
}

/// The total of the list, and the id of the first chartset of the page.
struct ChoiceFormat;

#[derive(Deserialize)]
struct Item {
    id: ChartsetId,
}

impl PageFormat for ChoiceFormat {
    fn cache_key(name: &[u8]) -> CacheKey {
        CacheKey::page(&[b"choice ", name].concat())
    }

    async fn fill(&self, search: Search) -> Result<Filled, ReadError> {
        let page = search.find_page(&search.query).await?;
        let id = |item: &Item| item.id.to_string();
        let first = page.items.first().map(|item| serde_json::from_str(item.as_str())).transpose();
        let first: Option<Item> = first
            .map_err(|error| ReadError::Failed { operation: "choose a chartset", source: error.into() })?;
        let id = first.as_ref().map(id).unwrap_or_default();
        let response = TextBody::new(format!("{} {id}", page.total)).into_cached();
        Ok(Filled { response, position: page.position })
    }
}
