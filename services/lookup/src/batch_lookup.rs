//! `POST /api/charts/lookup`: many lookups in one request (docs/api.md, "Batch lookup").

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_cache::CachedResponse;
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::{ApiError, FieldGroup, Include, JsonRequest, RequestHeaders, TextBody, uncached_json};
use chart_index_store::{ChartIdentifier, Store, VariantRequest};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::batch_request::{BatchItem, BatchRequest, IdentifierField, Subject};
use crate::json_object::JsonObject;
use crate::lookup_body::LookupBody;
use crate::openapi::{BatchParameters, BatchResponses};
use crate::{LookupState, charts, variants};

/// `POST /api/charts/lookup`.
#[utoipa::path(
    post,
    path = "/api/charts/lookup",
    operation_id = "lookUpCharts",
    tag = "Charts",
    params(BatchParameters),
    request_body(content = BatchRequest, content_type = "application/json"),
    responses(BatchResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn charts(
    State(state): State<Arc<LookupState>>,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
    JsonRequest(JsonObject(request)): JsonRequest<JsonObject<BatchRequest>>,
) -> Result<Response, ApiError> {
    let include = Include::of_query(&query.unwrap_or_default(), FieldGroup::OF_LOOKUPS)?;
    let items = request.items(include)?;
    // On another runtime: for a thousand hashes this takes milliseconds, in which the thread of this connection
    // would serve no other request.
    let task = {
        let background = state.background.clone();
        let read = async move {
            let body = read_bodies(&state, &items, include).await?;
            Ok(uncached_json(body.into(), &headers))
        };
        background.spawn(read.in_current_span())
    };
    AbortOnDropHandle::new(task).await.map_err(|error| ApiError::Internal(error.into()))?
}

/// The response body: `{"items":[…]}` with the body of each single lookup.
async fn read_bodies(
    state: &LookupState,
    items: &[BatchItem],
    include: Include,
) -> Result<Vec<u8>, ApiError> {
    let has_variants = include.has(FieldGroup::Variants);
    let hashes = identify(&state.store, items).await?;
    let request = |item: &BatchItem| {
        let hash = match item.subject {
            Subject::Hash(hash) => Some(hash),
            Subject::Identifier(identifier) => hashes.get(&identifier).copied(),
        };
        VariantRequest { hash, variant: item.variant.filter(|_| has_variants) }
    };
    let requests: Vec<VariantRequest> = items.iter().map(request).collect();
    // An item without either is unknown.
    let reads = || requests.iter().filter(|request| request.hash.is_some() || request.variant.is_some());
    let responses = if has_variants {
        let wanted: Vec<VariantRequest> = reads().copied().collect();
        read_with_variants(state, &wanted, include).await?
    } else {
        let hashes: Vec<NoteHash> = reads().filter_map(|request| request.hash).collect();
        read_without(state, &hashes, include).await?
    };
    let mut responses = responses.iter();
    let mut body = b"{\"items\":[".to_vec();
    for (index, (item, request)) in items.iter().zip(&requests).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let is_read = request.hash.is_some() || request.variant.is_some();
        write_item(&mut body, item, request, is_read.then(|| responses.next()).flatten())?;
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

/// The hashes of the items that are not requested by their hashes.
async fn identify(
    store: &Store,
    items: &[BatchItem],
) -> Result<HashMap<ChartIdentifier, NoteHash>, ReadError> {
    let identifier = |item: &BatchItem| match item.subject {
        Subject::Identifier(identifier) => Some(identifier),
        Subject::Hash(_) => None,
    };
    let identifiers: Vec<ChartIdentifier> = items.iter().filter_map(identifier).collect();
    if identifiers.is_empty() { Ok(HashMap::new()) } else { store.identify(&identifiers).await }
}

async fn read_without(
    state: &LookupState,
    hashes: &[NoteHash],
    include: Include,
) -> Result<Vec<CachedResponse>, ApiError> {
    let keys: Vec<_> = hashes.iter().map(|hash| charts::key(state, *hash, include)).collect();
    let fill = async |positions: Vec<usize>| {
        let missing: Vec<_> = positions.iter().map(|&position| hashes[position]).collect();
        read_charts(state, &missing, include).await
    };
    state.cache.read_many(&keys, fill).await
}

async fn read_with_variants(
    state: &LookupState,
    requests: &[VariantRequest],
    include: Include,
) -> Result<Vec<CachedResponse>, ApiError> {
    let key = |request| variants::lookup_key(request, include, &state.source_pages);
    let keys: Vec<_> = requests.iter().map(key).collect();
    let fill = async |positions: Vec<usize>| {
        let missing: Vec<_> = positions.iter().map(|&position| requests[position]).collect();
        let found = charts::read_variants(state, &missing, include).await?;
        let found = missing.iter().zip(&found);
        found.map(|(request, found)| variants::response(request, found)).collect()
    };
    state.cache.read_many(&keys, fill).await
}

/// Writes the body of a single lookup, after the identifier of an item that was not requested by its hash.
fn write_item(
    body: &mut Vec<u8>,
    item: &BatchItem,
    request: &VariantRequest,
    response: Option<&CachedResponse>,
) -> Result<(), ApiError> {
    let internal = |error: serde_json::Error| ApiError::Internal(error.into());
    let unknown = match response {
        Some(CachedResponse::Found(_)) => Vec::new(),
        Some(CachedResponse::NotFound) | None => {
            serde_json::to_vec(&LookupBody::new(request.hash, None)).map_err(internal)?
        }
    };
    let lookup = match response {
        Some(CachedResponse::Found(found)) => &found.plain().bytes[..],
        _ => &unknown,
    };
    if let Subject::Identifier(identifier) = item.subject {
        let field = serde_json::to_vec(&IdentifierField::from(identifier)).map_err(internal)?;
        // Both are objects with a field at least.
        body.extend_from_slice(field.strip_suffix(b"}").unwrap_or(&field));
        body.push(b',');
        body.extend_from_slice(lookup.strip_prefix(b"{").unwrap_or(lookup));
    } else {
        body.extend_from_slice(lookup);
    }
    Ok(())
}

async fn read_charts(
    state: &LookupState,
    hashes: &[NoteHash],
    include: Include,
) -> Result<Vec<CachedResponse>, ReadError> {
    let known = charts::read_charts(state, hashes, include).await?;
    let response = |hash: &NoteHash| match known.get(hash) {
        Some(chart) => Ok(TextBody::json(&LookupBody::new(Some(*hash), Some(chart)))?.into_cached()),
        None => Ok(CachedResponse::NotFound),
    };
    hashes.iter().map(response).collect()
}
