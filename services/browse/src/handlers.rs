//! The handlers: each extracts its parameters, reads through the response cache and responds.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::parse_query_string;
use chart_index_domain::{ChartsetId, NoteHash, PublicSource, ReadError, SourceRef};
use chart_index_http::openapi::Conditional;
use chart_index_http::{
    ApiError, CachePolicy, ChartsetIdParam, FieldGroup, HashParam, Include, MediaType, RequestHeaders,
    Resource, TextBody,
};

use crate::BrowseState;
use crate::json_bodies::DetailBody;
use crate::openapi::{
    ChartRedirectResponses, DetailParameters, DetailResponses, ListParameters, ListResponses,
    RedirectResponses,
};
use crate::search_engines::{JsonFormat, ListPage, ListRead};

/// Names the engine that the page of a list comes from.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

/// `GET /api/chartsets`.
#[utoipa::path(
    get,
    path = "/api/chartsets",
    operation_id = "listChartsets",
    tag = "Chartsets",
    params(ListParameters, Conditional),
    responses(ListResponses)
)]
pub(crate) async fn list(
    State(state): State<Arc<BrowseState>>,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let query = parse_query_string(&query.unwrap_or_default())?;
    let read = ListRead { cache: &state.cache, headers: &headers };
    let ListPage { engine, body, .. } = state.engines.read_page(read, query, &Arc::new(JsonFormat)).await?;
    let mut response = body.into_response(&headers, CachePolicy::Listing, MediaType::Json);
    response.headers_mut().insert(X_SEARCH_ENGINE, HeaderValue::from_static(engine.as_str()));
    Ok(response)
}

/// `GET /api/chartsets/{id}`.
#[utoipa::path(
    get,
    path = "/api/chartsets/{id}",
    operation_id = "getChartset",
    tag = "Chartsets",
    params(ChartsetIdParam, DetailParameters, Conditional),
    responses(DetailResponses)
)]
pub(crate) async fn detail(
    State(state): State<Arc<BrowseState>>,
    ChartsetIdParam(id): ChartsetIdParam,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let include = Include::of_query(&query.unwrap_or_default(), FieldGroup::OF_DETAILS)?;
    let key = detail_key(&state, id, include);
    let fill = {
        let state = Arc::clone(&state);
        move || read_detail(state, id, include)
    };
    let body = state.cache.read_text(key, &headers, fill).await?;
    let body = body.ok_or(ApiError::NotFound(Resource::Chartset))?;
    let response = body.into_response(&headers, CachePolicy::Listing, MediaType::Json);
    Ok((state.cache.cdn_headers(&key), response).into_response())
}

/// With the chartsets of its charts the response depends on more than its own chartset.
fn detail_key(state: &BrowseState, id: ChartsetId, include: Include) -> CacheKey {
    let key = if include.has(FieldGroup::Chartsets) {
        CacheKey::extended(&[b"detail ", &id.as_bytes()[..]].concat())
    } else {
        CacheKey::detail(id)
    };
    include.key(key, &state.source_pages)
}

async fn read_detail(
    state: Arc<BrowseState>,
    id: ChartsetId,
    include: Include,
) -> Result<CachedResponse, ReadError> {
    let Some(mut detail) = state.store.chartset(id).await? else { return Ok(CachedResponse::NotFound) };
    detail.charts.iter_mut().for_each(|entry| include.retain(&mut entry.chart));
    if include.has(FieldGroup::Links) {
        state.source_pages.link(&mut detail.sources);
    }
    let known = if include.has(FieldGroup::Chartsets) {
        let hashes: Vec<NoteHash> = detail.charts.iter().map(|entry| entry.chart.hash).collect();
        state.store.charts_with_chartsets(&hashes).await?
    } else {
        HashMap::new()
    };
    Ok(TextBody::json(&DetailBody::new(&detail, &known, include))?.into_cached())
}

/// `GET /go/chartset/{id}`: redirects to the public page of the chartset.
#[utoipa::path(
    get,
    path = "/go/chartset/{id}",
    operation_id = "goToSource",
    tag = "Chartsets",
    params(ChartsetIdParam),
    responses(RedirectResponses)
)]
pub(crate) async fn redirect(
    State(state): State<Arc<BrowseState>>,
    ChartsetIdParam(id): ChartsetIdParam,
) -> Result<Response, ApiError> {
    let key = CacheKey::source(id);
    let store = state.store.clone();
    let fill = async move || Ok::<_, ReadError>(cached(store.public_source(id).await?));
    redirect_to_source(&state, key, fill, Resource::SourcePage).await
}

/// `GET /go/chart/{hash}`: redirects to the page of the best source of the chart.
#[utoipa::path(
    get,
    path = "/go/chart/{hash}",
    operation_id = "goToChartSource",
    tag = "Charts",
    params(HashParam),
    responses(ChartRedirectResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn redirect_chart(
    State(state): State<Arc<BrowseState>>,
    HashParam(hash): HashParam,
) -> Result<Response, ApiError> {
    let store = state.store.clone();
    let fill = async move || {
        let chart = store.charts_with_chartsets(&[hash]).await?.remove(&hash);
        Ok::<_, ReadError>(cached(chart.and_then(|chart| chart.best_source())))
    };
    redirect_to_source(&state, CacheKey::chart_source(hash), fill, Resource::ChartSourcePage).await
}

async fn redirect_to_source<F, Fut>(
    state: &BrowseState,
    key: CacheKey,
    fill: F,
    resource: Resource,
) -> Result<Response, ApiError>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<CachedResponse, ReadError>> + Send + 'static,
{
    let cached = state.cache.read(key, fill).await?;
    let source = cached_source(&cached).ok_or(ApiError::NotFound(resource))?;
    let location = [(LOCATION, state.source_pages.page_of(&source))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, state.cache.cdn_headers(&key), location).into_response())
}

/// Caches a source as `<kind>/<ref>`. The address of its page is a setting of each replica.
fn cached(source: Option<PublicSource>) -> CachedResponse {
    let body = |source: PublicSource| format!("{}/{}", source.kind.as_str(), source.reference);
    source.map_or(CachedResponse::NotFound, |source| CachedResponse::found(body(source), ""))
}

fn cached_source(cached: &CachedResponse) -> Option<PublicSource> {
    let CachedResponse::Found(body) = cached else { return None };
    let (kind, number) = std::str::from_utf8(&body.plain().bytes).ok()?.split_once('/')?;
    Some(PublicSource { kind: kind.parse().ok()?, reference: SourceRef::from_number(number.parse().ok()?)? })
}
