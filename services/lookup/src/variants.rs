//! Charts with the same variant: `GET /api/variants/{variant}`, and `include=variants` of lookups
//! (docs/api.md, "Variants").

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::{NoteHash, ReadError, Variant};
use chart_index_http::openapi::Conditional;
use chart_index_http::{
    ApiError, CachePolicy, FieldGroup, Include, MediaType, PathParam, RequestHeaders, Resource, SourcePages,
    TextBody,
};
use chart_index_store::{ChartVariants, VariantRequest};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::lookup_body::{LookupBody, VariantChartsBody};
use crate::openapi::{VariantParameters, VariantResponses};
use crate::parameters::parse_variant;
use crate::{LookupState, charts};

/// `GET /api/variants/{variant}`. A variant that no chart has is 200 without items.
#[utoipa::path(
    get,
    path = "/api/variants/{variant}",
    operation_id = "listVariantCharts",
    tag = "Charts",
    params(VariantParameters, Conditional),
    responses(VariantResponses),
    extensions(("x-extension" = json!(true)))
)]
pub(crate) async fn variant_charts(
    State(state): State<Arc<LookupState>>,
    PathParam(text): PathParam,
    RawQuery(query): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let variant = parse_variant(&text)?;
    let include = Include::of_query(&query.unwrap_or_default(), FieldGroup::OF_VARIANTS)?;
    let key = CacheKey::extended(&[b"variant ", &variant.as_bytes()[..]].concat());
    let key = include.key(key, &state.source_pages);
    let fill = {
        let state = Arc::clone(&state);
        async move || {
            let request = VariantRequest { hash: None, variant: Some(variant) };
            let found = find(&state, request, include).await?;
            Ok::<_, ReadError>(TextBody::json(&VariantChartsBody::new(variant, &found))?.into_cached())
        }
    };
    let body = state.cache.read_text(key, &headers, fill).await?;
    let body = body.ok_or(ApiError::NotFound(Resource::Endpoint))?;
    Ok(body.into_response(&headers, CachePolicy::Lookup, MediaType::Json))
}

/// The key of a lookup with its variants. Single lookups and batches share it.
pub(crate) fn lookup_key(request: &VariantRequest, include: Include, pages: &SourcePages) -> CacheKey {
    let hash = request.hash.as_ref().map(NoteHash::as_bytes);
    let variant = request.variant.as_ref().map(Variant::as_bytes);
    let mut name = b"lookup".to_vec();
    for part in [hash, variant] {
        name.push(u8::from(part.is_some()));
        name.extend_from_slice(part.map_or(&[], |bytes| &bytes[..]));
    }
    include.key(CacheKey::extended(&name), pages)
}

/// The response to a lookup with its variants.
pub(crate) fn response(request: &VariantRequest, found: &ChartVariants) -> Result<CachedResponse, ReadError> {
    Ok(TextBody::json(&LookupBody::with_variants(request.hash, found))?.into_cached())
}

/// Finds variants on the background runtime: comparing the times of 21 long charts takes milliseconds.
pub(crate) async fn find(
    state: &Arc<LookupState>,
    request: VariantRequest,
    include: Include,
) -> Result<ChartVariants, ReadError> {
    let read = {
        let state = Arc::clone(state);
        async move { charts::read_variants(&state, &[request], include).await }
    };
    let read = AbortOnDropHandle::new(state.background.spawn(read.in_current_span()));
    let found = read.await.map_err(|error| ReadError::Failed {
        operation: "find variants of charts",
        source: error.into(),
    })??;
    Ok(found.into_iter().next().unwrap_or_default())
}
