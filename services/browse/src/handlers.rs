//! The handlers: each extracts its parameters, reads through the response cache and responds.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::{SearchQuery, parse_parameters, parse_query_string};
use chart_index_domain::{ChartsetId, PublicSource, ReadError, SourceRef};
use chart_index_http::openapi::Conditional;
use chart_index_http::{
    ApiError, CachePolicy, ChartsetIdParam, Include, MediaType, RequestHeaders, Resource, TextBody,
};
use chart_index_store::Store;

use crate::BrowseState;
use crate::json_bodies::DetailBody;
use crate::openapi::{DetailParameters, DetailResponses, ListParameters, ListResponses, RedirectResponses};
use crate::search_engines::{JsonFormat, ListPage, ListRead};

/// Names the engine that the page of a list comes from.
const X_SEARCH_ENGINE: HeaderName = HeaderName::from_static("x-search-engine");

/// Extracts the query string of a list.
pub(crate) struct ListQueryParams(SearchQuery);

impl<S: Sync> FromRequestParts<S> for ListQueryParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(parse_query_string(parts.uri.query().unwrap_or_default())?))
    }
}

/// Extracts the parameters of a detail.
pub(crate) struct DetailParams {
    id: ChartsetId,
    include: Include,
}

impl<S: Sync> FromRequestParts<S> for DetailParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let ChartsetIdParam(id) = ChartsetIdParam::from_request_parts(parts, state).await?;
        let [include] = parse_parameters(parts.uri.query().unwrap_or_default(), ["include"])?;
        let include = include.map(|value| Include::parse(&value)).transpose()?.unwrap_or_default();
        Ok(Self { id, include })
    }
}

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
    ListQueryParams(query): ListQueryParams,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
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
    DetailParams { id, include }: DetailParams,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let key = CacheKey::detail(id).with_fields(include.fields());
    let store = state.store.clone();
    let body = state.cache.read_text(key, &headers, move || read_detail(store, id, include)).await?;
    let body = body.ok_or(ApiError::NotFound(Resource::Chartset))?;
    let response = body.into_response(&headers, CachePolicy::Listing, MediaType::Json);
    Ok((state.cache.cdn_headers(&key), response).into_response())
}

async fn read_detail(store: Store, id: ChartsetId, include: Include) -> Result<CachedResponse, ReadError> {
    let Some(mut detail) = store.chartset(id).await? else { return Ok(CachedResponse::NotFound) };
    detail.charts.iter_mut().for_each(|entry| include.retain(&mut entry.chart));
    Ok(TextBody::json(&DetailBody::new(&detail))?.into_cached())
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
    let cached = state.cache.read(key, move || read_source(store, id)).await?;
    let source = cached_source(&cached).ok_or(ApiError::NotFound(Resource::SourcePage))?;
    let location = [(LOCATION, state.source_pages.page_of(&source))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, state.cache.cdn_headers(&key), location).into_response())
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
