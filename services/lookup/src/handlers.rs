//! The handlers: each extracts, asks the store, and answers.

use axum::extract::{FromRef, State};
use axum::response::Response;
use chart_index_http::{
    ApiError, CachePolicy, Conditions, EntityTag, HashParam, JsonBody, Missing, not_modified,
};
use chart_index_store::Store;

use crate::wire::LookupAnswer;
use crate::{LookupState, rox_file};

impl FromRef<LookupState> for Store {
    fn from_ref(state: &LookupState) -> Self {
        state.store.clone()
    }
}

/// `GET /api/charts/{hash}`: a hash that the index does not know is an answer, not an error.
pub(crate) async fn chart(
    State(store): State<Store>,
    HashParam(hash): HashParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let known = store.chart(hash).await?;
    let body = JsonBody::render(&LookupAnswer::new(hash, known.as_ref()))?;
    Ok(body.answer(&conditions, CachePolicy::Lookup))
}

/// `GET /api/charts/{hash}/rox`. The store is asked whatever the client has: a removed chart is gone for those
/// who have its file, too.
pub(crate) async fn rox(
    State(store): State<Store>,
    HashParam(hash): HashParam,
    conditions: Conditions,
) -> Result<Response, ApiError> {
    let bytes = store.rox(hash).await?.ok_or(ApiError::NotFound(Missing::Rox))?;
    let tag = EntityTag::from(hash);
    if conditions.has(&tag) {
        return Ok(not_modified(&tag, CachePolicy::Rox));
    }
    Ok(rox_file::answer(hash, &tag, bytes))
}
