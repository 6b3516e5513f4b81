//! The request handlers: each reads its response through the cache.

use axum::extract::State;
use axum::response::Response;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::{
    ApiError, CachePolicy, EntityTag, HashParam, JsonBody, RateLimitCheck, RequestHeaders, Resource,
    not_modified,
};
use chart_index_store::Store;

use crate::wire::LookupAnswer;
use crate::{LookupState, rox_file};

/// `GET /api/charts/{hash}`: a hash that the index does not know is an answer, not an error.
pub(crate) async fn chart(
    State(LookupState { store, cache }): State<LookupState>,
    check: RateLimitCheck,
    HashParam(hash): HashParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let fill = move || read_chart(store, hash);
    let body = match cache.read_json(&check, CacheKey::lookup(hash), &headers, fill).await? {
        Some(known) => known,
        None => JsonBody::render(&LookupAnswer::new(hash, None))?,
    };
    Ok(body.into_response(&headers, CachePolicy::Lookup))
}

async fn read_chart(store: Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    let Some(known) = store.chart(hash).await? else { return Ok(CachedResponse::NotFound) };
    Ok(JsonBody::render(&LookupAnswer::new(hash, Some(&known)))?.into_cached())
}

/// `GET /api/charts/{hash}/rox`. Whether the chart is there counts first, whatever the client has: a removed chart
/// is gone for those who have its file, too.
pub(crate) async fn rox(
    State(LookupState { store, cache }): State<LookupState>,
    check: RateLimitCheck,
    HashParam(hash): HashParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let kept = cache.read(&check, CacheKey::rox(hash), move || read_rox(store, hash)).await?;
    let CachedResponse::Found(file) = kept else { return Err(ApiError::NotFound(Resource::RoxFile)) };
    let tag = EntityTag::from(hash);
    if headers.matches(&tag) {
        return Ok(not_modified(&tag, CachePolicy::Rox));
    }
    Ok(rox_file::answer(hash, &tag, file.plain().bytes.clone()))
}

/// The tag of a ROX file is its hash, which is its name already.
async fn read_rox(store: Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    let bytes = store.rox(hash).await?;
    Ok(bytes.map_or(CachedResponse::NotFound, |bytes| CachedResponse::found(bytes, "")))
}
