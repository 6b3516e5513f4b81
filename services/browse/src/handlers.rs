//! The handlers: each extracts, reads through what is kept, and answers.

use axum::extract::{RawQuery, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, CachedAnswer};
use chart_index_domain::search::parse_query_string;
use chart_index_domain::{ChartsetId, ReadError};
use chart_index_http::{ApiError, CachePolicy, ChartsetIdParam, Conditions, JsonBody, Missing, Turn};
use chart_index_store::Store;

use crate::wire::ChartsetAnswer;
use crate::{BrowseState, SourcePages, listing};

/// Which engine answered, for those who run the service.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

/// `GET /api/chartsets`.
pub(crate) async fn list(
    State(state): State<BrowseState>,
    turn: Turn,
    RawQuery(query_string): RawQuery,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let query = parse_query_string(query_string.as_deref().unwrap_or_default())?;
    let (engine, body) = listing::read(&state, &turn, query).await?;
    let mut response = body.answer(&conditions, CachePolicy::Listing);
    response.headers_mut().insert(X_SEARCH_ENGINE, HeaderValue::from_static(engine.as_str()));
    Ok(response)
}

/// `GET /api/chartsets/{id}`.
pub(crate) async fn detail(
    State(state): State<BrowseState>,
    turn: Turn,
    ChartsetIdParam(id): ChartsetIdParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let key = CacheKey::detail(id, state.watch.generation());
    let kept = state.answers.read(&turn, key, move || read_detail(state.store, id)).await?;
    let body = JsonBody::kept(kept).ok_or(ApiError::NotFound(Missing::Chartset))?;
    Ok(body.answer(&conditions, CachePolicy::Listing))
}

async fn read_detail(store: Store, id: ChartsetId) -> Result<CachedAnswer, ReadError> {
    let Some(detail) = store.chartset(id).await? else { return Ok(CachedAnswer::NotFound) };
    Ok(JsonBody::render(&ChartsetAnswer::new(&detail))?.keep())
}

/// `GET /go/chartset/{id}`: to the page where the chartset is published.
pub(crate) async fn redirect(
    State(state): State<BrowseState>,
    turn: Turn,
    ChartsetIdParam(id): ChartsetIdParam,
) -> Result<Response, ApiError> {
    let key = CacheKey::source(id, state.watch.generation());
    let pages = state.source_pages;
    let kept = state.answers.read(&turn, key, move || read_source_page(state.store, pages, id)).await?;
    let CachedAnswer::Found { body, .. } = kept else {
        return Err(ApiError::NotFound(Missing::PublicSource));
    };
    let page = HeaderValue::from_maybe_shared(body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok((StatusCode::FOUND, CachePolicy::Redirect, [(LOCATION, page)]).into_response())
}

async fn read_source_page(
    store: Store,
    pages: SourcePages,
    id: ChartsetId,
) -> Result<CachedAnswer, ReadError> {
    let source = store.public_source(id).await?;
    Ok(source.map_or(CachedAnswer::NotFound, |source| CachedAnswer::found(pages.page_of(&source), "")))
}
