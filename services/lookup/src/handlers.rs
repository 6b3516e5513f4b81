//! The handlers: each extracts its parameters, reads through the response cache and responds.

use std::array::TryFromSliceError;
use std::error::Error;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chart_index_cache::{CacheKey, CachedResponse, Representation};
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::openapi::Conditional;
use chart_index_http::{
    ApiError, CachePolicy, EntityTag, FieldGroup, HashParam, Include, MediaType, RequestHeaders, Resource,
    TextBody, not_modified,
};
use chart_index_objects::{ObjectDigest, PublicObjectsUrl};
use chart_index_store::{RoxFile, RoxSource, Store, VariantRequest};

use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::lookup_body::LookupBody;
use crate::openapi::{ChartResponses, LookupParameters, PreviewResponses, RoxResponses};
use crate::parameters::parse_lookup;
use crate::rox_response::rox_response;
use crate::variants;
use crate::{LookupState, charts};

/// `GET /api/charts/{hash}`. An unknown hash is 200 with the status `unknown`.
#[utoipa::path(
    get,
    path = "/api/charts/{hash}",
    operation_id = "lookUpChart",
    tag = "Charts",
    params(HashParam, LookupParameters, Conditional),
    responses(ChartResponses)
)]
pub(crate) async fn chart(
    State(state): State<Arc<LookupState>>,
    HashParam(hash): HashParam,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let (include, variant) = parse_lookup(&query.unwrap_or_default())?;
    let (key, cached) = if include.has(FieldGroup::Variants) {
        let request = VariantRequest { hash: Some(hash), variant };
        let fill = {
            let state = Arc::clone(&state);
            async move || variants::response(&request, &variants::find(&state, request, include).await?)
        };
        let key = variants::lookup_key(&request, include, &state.source_pages);
        (key, state.cache.read_text(key, &headers, fill).await?)
    } else {
        let fill = {
            let state = Arc::clone(&state);
            async move || read_chart(&state, hash, include).await
        };
        let key = charts::key(&state, hash, include);
        (key, state.cache.read_text(key, &headers, fill).await?)
    };
    let body = match cached {
        Some(known) => known,
        None => TextBody::json(&LookupBody::new(Some(hash), None))?,
    };
    let response = body.into_response(&headers, CachePolicy::Lookup, MediaType::Json);
    Ok((state.cache.cdn_headers(&key), response).into_response())
}

async fn read_chart(
    state: &LookupState,
    hash: NoteHash,
    include: Include,
) -> Result<CachedResponse, ReadError> {
    let Some(known) = charts::read_chart(state, hash, include).await? else {
        return Ok(CachedResponse::NotFound);
    };
    Ok(TextBody::json(&LookupBody::new(Some(hash), Some(&known)))?.into_cached())
}

/// `GET /api/charts/{hash}/rox`. Checks that the chart exists before `If-None-Match`: a removed chart is 404
/// for clients that have its file, too.
#[utoipa::path(
    get,
    path = "/api/charts/{hash}/rox",
    operation_id = "getRoxFile",
    tag = "Charts",
    params(HashParam, Conditional),
    responses(RoxResponses)
)]
pub(crate) async fn rox(
    State(state): State<Arc<LookupState>>,
    HashParam(hash): HashParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    if let Some(objects) = &state.public_objects {
        return rox_or_redirect(&state, hash, &headers, objects).await;
    }
    let fill = {
        let state = Arc::clone(&state);
        async move || read_rox(&state.store, hash).await
    };
    let key = CacheKey::rox(hash);
    let CachedResponse::Found(rox) = state.cache.read(key, fill).await? else {
        return Ok(not_found(&state, &key, Resource::RoxFile));
    };
    let response = cached_rox_response(hash, &headers, rox.plain())?;
    Ok((state.cache.cdn_headers(&key), response).into_response())
}

/// Responds with a redirect to the object, if the file is one.
async fn rox_or_redirect(
    state: &Arc<LookupState>,
    hash: NoteHash,
    headers: &RequestHeaders,
    objects: &PublicObjectsUrl,
) -> Result<Response, ApiError> {
    let fill = {
        let state = Arc::clone(state);
        async move || read_rox_source(&state.store, hash).await
    };
    // Other replicas may respond with the file.
    let key = CacheKey::rox(hash).with_fields(1);
    let CachedResponse::Found(cached) = state.cache.read(key, fill).await? else {
        return Ok(not_found(state, &key, Resource::RoxFile));
    };
    let cdn_headers = state.cache.cdn_headers(&key);
    let body = cached.plain();
    if *body.tag != *OBJECT {
        return Ok((cdn_headers, cached_rox_response(hash, headers, body)?).into_response());
    }
    let digest: [u8; 32] =
        body.bytes[..].try_into().map_err(|error: TryFromSliceError| ApiError::Internal(error.into()))?;
    let location = [(LOCATION, objects.address_of(&ObjectDigest::from_bytes(digest)))];
    Ok((StatusCode::FOUND, CachePolicy::Redirect, cdn_headers, location).into_response())
}

/// The tag of a cached response that is the digest of an object: no entity tag.
const OBJECT: &str = "object";

async fn read_rox_source(store: &Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    Ok(match store.rox_source(hash).await? {
        None => CachedResponse::NotFound,
        Some(RoxSource::File(file)) => cached_rox(file),
        Some(RoxSource::Object(digest)) => CachedResponse::found(digest.as_bytes().to_vec(), OBJECT),
    })
}

fn cached_rox_response(
    hash: NoteHash,
    headers: &RequestHeaders,
    rox: &Representation,
) -> Result<Response, ApiError> {
    let tag = match &*rox.tag {
        "" => EntityTag::from(hash),
        tag => tag.parse().map_err(|error| ApiError::Internal(Box::new(error)))?,
    };
    Ok(if headers.matches(&tag) {
        not_modified(&tag, CachePolicy::Rox)
    } else {
        rox_response(hash, &tag, rox.bytes.clone())
    })
}

async fn read_rox(store: &Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    Ok(store.rox(hash).await?.map_or(CachedResponse::NotFound, cached_rox))
}

/// Caches the file without a tag, which is the hash, or with that of its content if it replaces another file.
fn cached_rox(RoxFile { bytes, is_replaced }: RoxFile) -> CachedResponse {
    let tag = is_replaced.then(|| EntityTag::from_content(&bytes));
    CachedResponse::found(bytes, tag.as_ref().map_or("", EntityTag::as_str))
}

/// `GET /api/charts/{hash}/preview`, computed from the ROX file. The tag is that of the content: unlike a ROX
/// file, a preview is sent as gzip as well.
#[utoipa::path(
    get,
    path = "/api/charts/{hash}/preview",
    operation_id = "getChartPreview",
    tag = "Charts",
    params(HashParam, Conditional),
    responses(PreviewResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn preview(
    State(state): State<Arc<LookupState>>,
    HashParam(hash): HashParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let fill = {
        let state = Arc::clone(&state);
        async move || read_preview(&state, hash).await
    };
    let key = CacheKey::preview(hash);
    let Some(preview) = state.cache.read_text(key, &headers, fill).await? else {
        return Ok(not_found(&state, &key, Resource::RoxFile));
    };
    let response = preview.into_response(&headers, CachePolicy::Rox, MediaType::Json);
    Ok((state.cache.cdn_headers(&key), response).into_response())
}

/// The maximum number of bytes of a ROX file whose preview takes a tenth of a millisecond.
const SHORT_ROX_FILE: usize = 4 * 1024;

/// Computes the preview: to store it would double the database (benchmarks/results/2026-11-28-one-file.md).
/// That of a long chart takes milliseconds, on the background runtime.
async fn read_preview(state: &LookupState, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    let Some(RoxFile { bytes, .. }) = state.store.rox(hash).await? else {
        return Ok(CachedResponse::NotFound);
    };
    let failed =
        |source: Box<dyn Error + Send + Sync>| ReadError::Failed { operation: "compute preview", source };
    let is_short = bytes.len() <= SHORT_ROX_FILE;
    let compute =
        async move { chart_index_rox::preview(&bytes).map(|json| TextBody::new(json).into_cached()) };
    let computed = if is_short {
        compute.await
    } else {
        let computed = AbortOnDropHandle::new(state.background.spawn(compute.in_current_span())).await;
        computed.map_err(|error| failed(error.into()))?
    };
    computed.map_err(|error| failed(error.into()))
}

/// A 404 with the tag of the chart, so that it is purged when the chart is added.
fn not_found(state: &LookupState, key: &CacheKey, resource: Resource) -> Response {
    (state.cache.cdn_headers(key), ApiError::NotFound(resource)).into_response()
}
