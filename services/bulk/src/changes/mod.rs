//! `GET /api/changes`: pages of the change feed (docs/api.md, "Changes").

mod feed_json;
mod long_polls;
mod openapi;
mod page_request;
mod shared_pages;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_http::openapi::Conditional;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};
use chart_index_store::{FeedError, PageEnd, Store};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

pub(crate) use self::feed_json::{ChangeItem, ChangesBody};
pub use self::long_polls::{ChangesSettings, LongPolls};
use self::openapi::{ChangesParameters, ChangesResponses};
use self::page_request::FeedPageRequest;
pub(crate) use self::shared_pages::SharedPages;
use crate::BulkState;

/// A page, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct FeedPageBody {
    body: TextBody,
    end: PageEnd,
    is_empty: bool,
}

/// `GET /api/changes`. Pages are not in the response cache: a mirror reads each once, and they would displace
/// what others read.
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
    if !request.wait.is_zero()
        && let Some(page) = state.pages.get(request)
    {
        return Ok(respond(page, request, &headers));
    }
    // On another runtime: writing and compressing a page of megabytes takes milliseconds, in which the thread
    // of this connection would serve no other request.
    let task = {
        let background = state.background.clone();
        let read = async move {
            let page = if request.wait.is_zero() {
                read_page(&state.store, request).await
            } else {
                state.pages.read(&state.store, request).await
            };
            Ok(respond(page?, request, &headers))
        };
        background.spawn(read.in_current_span())
    };
    AbortOnDropHandle::new(task).await.map_err(|error| ApiError::Internal(error.into()))?
}

fn respond(page: FeedPageBody, request: FeedPageRequest, headers: &RequestHeaders) -> Response {
    let policy = match page.end {
        // A client that waits again would get it from a cache at once.
        _ if page.is_empty && !request.wait.is_zero() => CachePolicy::NoStore,
        PageEnd::Full => CachePolicy::FullFeedPage,
        PageEnd::EndOfFeed => CachePolicy::FeedTail,
    };
    page.body.into_response(headers, policy, MediaType::Json)
}

async fn read_page(store: &Store, request: FeedPageRequest) -> Result<FeedPageBody, ApiError> {
    let FeedPageRequest { after, lineage, limit, .. } = request;
    let page = store.feed_after(after, lineage, limit).await.map_err(|error| match error {
        FeedError::Lost => ApiError::ChangesLost,
        FeedError::Read(error) => error.into(),
    })?;
    let body = TextBody::json(&ChangesBody::new(&page, after))?;
    Ok(FeedPageBody { body, end: page.end, is_empty: page.entries.is_empty() })
}
