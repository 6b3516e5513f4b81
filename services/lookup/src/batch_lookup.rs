//! `POST /api/charts/lookup`: many lookups in one request (docs/api.md, "Batch lookup").

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::ParameterError;
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::{ApiError, JsonRequest, RequestHeaders, ResponseCache, TextBody, uncached_json};
use chart_index_store::Store;
use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use utoipa::ToSchema;

use crate::LookupState;
use crate::lookup_body::LookupBody;
use crate::openapi::BatchResponses;

/// The maximum number of hashes in a request.
const MAX_HASHES: usize = 1_000;

/// The request body. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BatchLookupRequest)]
pub(crate) struct BatchRequest {
    #[schema(value_type = Vec<NoteHash>, min_items = 1, max_items = 1_000)]
    hashes: Vec<String>,
}

impl BatchRequest {
    /// The hashes.
    ///
    /// # Errors
    ///
    /// There are none, or too many, or one of them is malformed.
    fn hashes(&self) -> Result<Vec<NoteHash>, ApiError> {
        if self.hashes.is_empty() || self.hashes.len() > MAX_HASHES {
            let reason = format!("accepts 1 to {MAX_HASHES} hashes, not {}", self.hashes.len());
            return Err(ParameterError { parameter: "hashes", reason: reason.into() }.into());
        }
        let parse = |(index, hash): (usize, &String)| {
            hash.parse().map_err(|_| ApiError::MalformedHashAt { parameter: "hashes", index })
        };
        self.hashes.iter().enumerate().map(parse).collect()
    }
}

/// `POST /api/charts/lookup`.
#[utoipa::path(
    post,
    path = "/api/charts/lookup",
    operation_id = "lookUpCharts",
    tag = "Charts",
    request_body(content = BatchRequest, content_type = "application/json"),
    responses(BatchResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn charts(
    State(state): State<Arc<LookupState>>,
    headers: RequestHeaders,
    JsonRequest(request): JsonRequest<BatchRequest>,
) -> Result<Response, ApiError> {
    let hashes = request.hashes()?;
    // On another runtime: for a thousand hashes this takes milliseconds, in which the thread of this connection
    // would serve no other request.
    let task = {
        let background = state.background.clone();
        let read = async move {
            let body = read_bodies(&state.cache, &state.store, &hashes).await?;
            Ok(uncached_json(body.into(), &headers))
        };
        background.spawn(read.in_current_span())
    };
    AbortOnDropHandle::new(task).await.map_err(|error| ApiError::Internal(error.into()))?
}

/// The response body: `{"items":[…]}` with the body of each single lookup.
async fn read_bodies(cache: &ResponseCache, store: &Store, hashes: &[NoteHash]) -> Result<Vec<u8>, ApiError> {
    let keys: Vec<_> = hashes.iter().copied().map(CacheKey::lookup).collect();
    let fill = async |positions: Vec<usize>| {
        let missing: Vec<_> = positions.iter().map(|&position| hashes[position]).collect();
        read_charts(store, &missing).await
    };
    let responses = cache.read_many(&keys, fill).await?;
    let mut body = b"{\"items\":[".to_vec();
    for (index, (&hash, response)) in hashes.iter().zip(&responses).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write_item(&mut body, hash, response)?;
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

fn write_item(body: &mut Vec<u8>, hash: NoteHash, response: &CachedResponse) -> Result<(), ApiError> {
    match response {
        CachedResponse::Found(known) => body.extend_from_slice(&known.plain().bytes),
        CachedResponse::NotFound => serde_json::to_writer(body, &LookupBody::new(hash, None))
            .map_err(|error| ApiError::Internal(error.into()))?,
    }
    Ok(())
}

async fn read_charts(store: &Store, hashes: &[NoteHash]) -> Result<Vec<CachedResponse>, ReadError> {
    let known = store.charts(hashes).await?;
    let response = |hash: &NoteHash| match known.get(hash) {
        Some(chart) => Ok(TextBody::json(&LookupBody::new(*hash, Some(chart)))?.into_cached()),
        None => Ok(CachedResponse::NotFound),
    };
    hashes.iter().map(response).collect()
}
