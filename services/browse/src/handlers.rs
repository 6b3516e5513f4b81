//! The handlers: each extracts, asks the engine or the store, and answers.

use std::sync::Arc;

use axum::extract::{FromRef, RawQuery, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_domain::search::{SearchIndex, parse_query_string};
use chart_index_http::{ApiError, CachePolicy, ChartsetIdParam, Conditions, JsonBody, Missing};
use chart_index_store::Store;

use crate::wire::{ChartsetAnswer, ListAnswer};
use crate::{BrowseState, SourcePages};

/// Which engine answered, for those who run the service.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

impl FromRef<BrowseState> for Arc<dyn SearchIndex> {
    fn from_ref(state: &BrowseState) -> Self {
        Self::clone(&state.search)
    }
}

impl FromRef<BrowseState> for Store {
    fn from_ref(state: &BrowseState) -> Self {
        state.store.clone()
    }
}

impl FromRef<BrowseState> for SourcePages {
    fn from_ref(state: &BrowseState) -> Self {
        state.source_pages.clone()
    }
}

/// `GET /api/chartsets`.
pub(crate) async fn list(
    State(search): State<Arc<dyn SearchIndex>>,
    RawQuery(query_string): RawQuery,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let query = parse_query_string(query_string.as_deref().unwrap_or_default())?;
    let page = search.search(&query, search.generation()).await?;
    let body = JsonBody::render(&ListAnswer::new(&page, query.page))?;
    let mut response = body.answer(&conditions, CachePolicy::Listing);
    response.headers_mut().insert(X_SEARCH_ENGINE, HeaderValue::from_static(search.engine().as_str()));
    Ok(response)
}

/// `GET /api/chartsets/{id}`.
pub(crate) async fn detail(
    State(store): State<Store>,
    ChartsetIdParam(id): ChartsetIdParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let detail = store.chartset(id).await?.ok_or(ApiError::NotFound(Missing::Chartset))?;
    let body = JsonBody::render(&ChartsetAnswer::new(&detail))?;
    Ok(body.answer(&conditions, CachePolicy::Listing))
}

/// `GET /go/chartset/{id}`: to the page where the chartset is published.
pub(crate) async fn redirect(
    State(store): State<Store>,
    State(source_pages): State<SourcePages>,
    ChartsetIdParam(id): ChartsetIdParam,
) -> Result<Response, ApiError> {
    let source = store.public_source(id).await?.ok_or(ApiError::NotFound(Missing::PublicSource))?;
    let location = [(LOCATION, source_pages.page_of(&source))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, location).into_response())
}
