//! `GET /api/changes`: pages of the change feed (docs/api.md, "Changes").

mod feed_json;
mod openapi;
mod page_request;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_http::openapi::Conditional;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};
use chart_index_store::{FeedError, PageEnd, Store};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

pub(crate) use self::feed_json::{ChangeItem, ChangesBody};
use self::openapi::{ChangesParameters, ChangesResponses};
use self::page_request::FeedPageRequest;
use crate::BulkState;

/// Typical size of a change: a third of them are chartsets, with 1 KB for each of their charts.
const TYPICAL_BYTES: usize = 2_048;

/// `GET /api/changes`. Pages are not cached here: a mirror reads each once, and they would displace what others
/// read.
#[utoipa::path(
    get,
    path = "/api/changes",
    operation_id = "listChanges",
    tag = "Bulk",
    params(ChangesParameters, Conditional),
    responses(ChangesResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn changes(
    State(state): State<Arc<BulkState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let request = FeedPageRequest::parse(query_string.as_deref().unwrap_or_default())?;
    // On another runtime: writing and compressing a page of megabytes takes milliseconds, in which the thread
    // of this connection would serve no other request.
    let task = {
        let background = state.background.clone();
        let read = async move { read_page(&state.store, request, &headers).await };
        background.spawn(read.in_current_span())
    };
    AbortOnDropHandle::new(task).await.map_err(|error| ApiError::Internal(error.into()))?
}

async fn read_page(
    store: &Store,
    request: FeedPageRequest,
    headers: &RequestHeaders,
) -> Result<Response, ApiError> {
    let page = store.feed_after(request.after, request.limit).await.map_err(|error| match error {
        FeedError::Lost => ApiError::ChangesLost,
        FeedError::Read(error) => error.into(),
    })?;
    let body = ChangesBody::new(&page, request.after);
    let body = TextBody::json_sized(&body, page.entries.len() * TYPICAL_BYTES)?;
    let policy = match page.end {
        PageEnd::Full => CachePolicy::FullFeedPage,
        PageEnd::Pending | PageEnd::EndOfFeed => CachePolicy::FeedTail,
    };
    Ok(body.into_response(headers, policy, MediaType::Json))
}
