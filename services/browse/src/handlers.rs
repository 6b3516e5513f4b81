//! The handlers: each extracts, reads through what is kept, and answers.

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

use crate::wire::ChartsetAnswer;
use crate::{BrowseState, listing};

/// Which engine answered, for those who run the service.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

/// `GET /api/chartsets`.
pub(crate) async fn list(
    State(state): State<Arc<BrowseState>>,
    turn: Turn,
    RawQuery(query_string): RawQuery,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let query = parse_query_string(query_string.as_deref().unwrap_or_default())?;
    let (engine, body) = listing::read(&state, &turn, query, &conditions).await?;
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
    Ok(JsonBody::render(&ChartsetAnswer::new(&detail))?.keep())
}

/// `GET /go/chartset/{id}`: to the page where the chartset is published.
pub(crate) async fn redirect(
    State(state): State<Arc<BrowseState>>,
    turn: Turn,
    ChartsetIdParam(id): ChartsetIdParam,
) -> Result<Response, ApiError> {
    let key = CacheKey::source(id, state.watch.generation());
    let store = state.store.clone();
    let kept = state.answers.read(&turn, key, move || read_source(store, id)).await?;
    let source = kept_source(&kept).ok_or(ApiError::NotFound(Missing::PublicSource))?;
    let location = [(LOCATION, state.source_pages.page_of(&source))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, location).into_response())
}

/// What is kept is the source, `<kind>/<ref>`: where it has its page is a setting of each replica.
async fn read_source(store: Store, id: ChartsetId) -> Result<CachedResponse, ReadError> {
    let source = store.public_source(id).await?;
    let kept = |source: PublicSource| format!("{}/{}", source.kind, source.reference);
    Ok(source.map_or(CachedResponse::NotFound, |source| CachedResponse::found(kept(source), "")))
}

fn kept_source(kept: &CachedResponse) -> Option<PublicSource> {
    let CachedResponse::Found(body) = kept else { return None };
    let (kind, number) = std::str::from_utf8(&body.plain().bytes).ok()?.split_once('/')?;
    Some(PublicSource { kind: kind.parse().ok()?, reference: SourceRef::from_number(number.parse().ok()?)? })
}
