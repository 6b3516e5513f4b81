//! The handlers: each extracts its parameters, reads through the response cache and responds.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::parse_query_string;
use chart_index_domain::{ChartsetId, PublicSource, ReadError, SourceRef};
use chart_index_http::{ApiError, CachePolicy, ChartsetIdParam, Conditions, JsonBody, Missing, Turn};
use chart_index_store::Store;

use crate::BrowseState;
use crate::json_bodies::DetailBody;

/// Names the engine that the page of a list comes from.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

/// `GET /api/chartsets`.
pub(crate) async fn list(
    State(state): State<Arc<BrowseState>>,
    turn: Turn,
    RawQuery(query_string): RawQuery,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let query = parse_query_string(query_string.as_deref().unwrap_or_default())?;
    let (engine, body) = state.engines.page(&state.answers, &turn, query, &conditions).await?;
    let mut response = body.answer(&conditions, CachePolicy::Listing);
    response.headers_mut().insert(X_SEARCH_ENGINE, HeaderValue::from_static(engine.as_str()));
    Ok(response)
}

/// `GET /api/chartsets/{id}`.
pub(crate) async fn detail(
    State(state): State<Arc<BrowseState>>,
    turn: Turn,
    ChartsetIdParam(id): ChartsetIdParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let key = CacheKey::detail(id, state.watch.generation());
    let store = state.store.clone();
    let body = state.answers.read_json(&turn, key, &conditions, move || read_detail(store, id)).await?;
    let body = body.ok_or(ApiError::NotFound(Missing::Chartset))?;
    Ok(body.answer(&conditions, CachePolicy::Listing))
}

async fn read_detail(store: Store, id: ChartsetId) -> Result<CachedResponse, ReadError> {
    let Some(detail) = store.chartset(id).await? else { return Ok(CachedResponse::NotFound) };
    Ok(JsonBody::render(&DetailBody::new(&detail))?.keep())
}

/// `GET /go/chartset/{id}`: redirects to the public page of the chartset.
pub(crate) async fn redirect(
    State(state): State<Arc<BrowseState>>,
    turn: Turn,
    ChartsetIdParam(id): ChartsetIdParam,
) -> Result<Response, ApiError> {
    let key = CacheKey::source(id, state.watch.generation());
    let store = state.store.clone();
    let cached = state.answers.read(&turn, key, move || read_source(store, id)).await?;
    let source = cached_source(&cached).ok_or(ApiError::NotFound(Missing::PublicSource))?;
    let location = [(LOCATION, state.source_pages.page_of(&source))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, location).into_response())
}

/// Caches the source as `<kind>/<ref>`. The address of its page is a setting of each replica.
async fn read_source(store: Store, id: ChartsetId) -> Result<CachedResponse, ReadError> {
    let source = store.public_source(id).await?;
    let body = |source: PublicSource| format!("{}/{}", source.kind, source.reference);
    Ok(source.map_or(CachedResponse::NotFound, |source| CachedResponse::found(body(source), "")))
}

fn cached_source(cached: &CachedResponse) -> Option<PublicSource> {
    let CachedResponse::Found(body) = cached else { return None };
    let (kind, number) = std::str::from_utf8(&body.plain().bytes).ok()?.split_once('/')?;
    Some(PublicSource { kind: kind.parse().ok()?, reference: SourceRef::from_number(number.parse().ok()?)? })
}
