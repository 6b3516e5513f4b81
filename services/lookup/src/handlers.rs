//! The handlers: each extracts, reads through what is kept, and answers.

use axum::extract::State;
use axum::response::Response;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::{
    ApiError, CachePolicy, Conditions, EntityTag, HashParam, JsonBody, Missing, Turn, not_modified,
};
use chart_index_store::Store;

use crate::wire::LookupAnswer;
use crate::{LookupState, rox_file};

/// `GET /api/charts/{hash}`: a hash that the index does not know is an answer, not an error.
pub(crate) async fn chart(
    State(LookupState { store, answers }): State<LookupState>,
    turn: Turn,
    HashParam(hash): HashParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let fill = move || read_chart(store, hash);
    let body = match answers.read_json(&turn, CacheKey::lookup(hash), &conditions, fill).await? {
        Some(known) => known,
        None => JsonBody::render(&LookupAnswer::new(hash, None))?,
    };
    Ok(body.answer(&conditions, CachePolicy::Lookup))
}

async fn read_chart(store: Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    let Some(known) = store.chart(hash).await? else { return Ok(CachedResponse::NotFound) };
    Ok(JsonBody::render(&LookupAnswer::new(hash, Some(&known)))?.keep())
}

/// `GET /api/charts/{hash}/rox`. Whether the chart is there counts first, whatever the client has: a removed chart
/// is gone for those who have its file, too.
pub(crate) async fn rox(
    State(LookupState { store, answers }): State<LookupState>,
    turn: Turn,
    HashParam(hash): HashParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let kept = answers.read(&turn, CacheKey::rox(hash), move || read_rox(store, hash)).await?;
    let CachedResponse::Found(file) = kept else { return Err(ApiError::NotFound(Missing::Rox)) };
    let tag = EntityTag::from(hash);
    if conditions.has(&tag) {
        return Ok(not_modified(&tag, CachePolicy::Rox));
    }
    Ok(rox_file::answer(hash, &tag, file.plain().bytes.clone()))
}

/// The tag of a ROX file is its hash, which is its name already.
async fn read_rox(store: Store, hash: NoteHash) -> Result<CachedResponse, ReadError> {
    let bytes = store.rox(hash).await?;
    Ok(bytes.map_or(CachedResponse::NotFound, |bytes| CachedResponse::found(bytes, "")))
}
