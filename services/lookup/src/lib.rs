//! The lookup service: the sources of a chart, its variants, its ROX file and its preview.

mod batch_lookup;
mod batch_request;
mod charts;
mod handlers;
mod json_object;
mod lookup_body;
mod lookup_schemas;
mod openapi;
mod parameters;
mod rox_response;
mod variants;

use std::sync::Arc;

use axum::routing::{get, post};
use chart_index_http::{ResponseCache, Routes, SourcePages};
use chart_index_objects::PublicObjectsUrl;
use chart_index_ratelimit::Group;
use chart_index_store::Store;
use tokio::runtime::Handle;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{OpenApi, ToSchema};

use crate::batch_request::{BatchRequest, ChartReference};
use crate::lookup_body::VariantChartsBody;
use crate::lookup_schemas::ChartLookup;
use crate::openapi::{BatchBody, ChartPreview};

/// What the handlers share.
#[derive(Debug)]
pub struct LookupState {
    /// For lookups, ROX files and previews.
    pub store: Store,
    /// Caches responses.
    pub cache: ResponseCache,
    /// Where clients are sent for ROX files that are objects; `None` to respond with the files.
    pub public_objects: Option<PublicObjectsUrl>,
    /// The pages of sources, for responses that include links.
    pub source_pages: SourcePages,
    /// The runtime for batches, which take milliseconds of processor time.
    pub background: Handle,
}

/// The routes of `/api/charts` and `/api/variants`.
pub fn routes(state: LookupState) -> Routes {
    Routes::new()
        .route(Group::Lookup, "/api/charts/{hash}", get(handlers::chart))
        .post_route(Group::Bulk, "/api/charts/lookup", post(batch_lookup::charts))
        .route(Group::Rox, "/api/charts/{hash}/rox", get(handlers::rox))
        .route(Group::Preview, "/api/charts/{hash}/preview", get(handlers::preview))
        .route(Group::Lookup, "/api/variants/{variant}", get(variants::variant_charts))
        .with_state(Arc::new(state))
}

/// The operations of the routes. A test of the pages compares them with the routes.
#[derive(OpenApi)]
#[openapi(
    paths(
        handlers::chart,
        handlers::rox,
        handlers::preview,
        batch_lookup::charts,
        variants::variant_charts
    ),
    components(schemas(BatchBody, BatchRequest, ChartLookup, ChartPreview, VariantChartsBody<'static>))
)]
struct LookupApi;

/// The OpenAPI document of this service: its operations and schemas.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = LookupApi::openapi();
    let schemas = &mut document.components.get_or_insert_default().schemas;
    // The derive macro cannot say that an object is not empty.
    for name in [BatchRequest::name(), ChartReference::name()] {
        if let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(&*name) {
            object.min_properties = Some(1);
        }
    }
    document
}
