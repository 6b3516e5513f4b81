//! The bulk service: what mirrors and programs with many charts read.

mod changes;
mod exports;
mod hash_filter;

use std::sync::Arc;

use axum::routing::get;
use chart_index_domain::{ChartsetRecord, ExportManifest, ExportedFile};
use chart_index_http::Routes;
use chart_index_ratelimit::Group;
use chart_index_store::Store;
use tokio::runtime::Handle;
use utoipa::OpenApi;

use crate::changes::{ChangeItem, ChangesBody, SharedPages};
pub use crate::changes::{ChangesSettings, LongPolls};
use crate::exports::handlers;
pub use crate::exports::{ExportsSettings, NewestExport};

/// What the service needs.
#[derive(Debug)]
pub struct BulkOptions {
    /// For the change feed and the hash filters.
    pub store: Store,
    /// The runtime for work that takes milliseconds of processor time.
    pub background: Handle,
    /// Where the exports are.
    pub exports: ExportsSettings,
    /// Lets requests of the change feed wait.
    pub long_polls: LongPolls,
}

/// What the handlers share.
#[derive(Debug)]
struct BulkState {
    store: Store,
    background: Handle,
    exports: ExportsSettings,
    pages: SharedPages,
}

/// The routes of `/api/changes`, `/api/charts/filter` and `/api/exports`.
pub fn routes(options: BulkOptions) -> Routes {
    let hash_filter = hash_filter::routes(&options);
    let BulkOptions { store, background, exports, long_polls } = options;
    let state = BulkState { store, background, exports, pages: SharedPages::new(&long_polls) };
    Routes::new()
        .long_polling_route(Group::Feed, "/api/changes", long_polls, get(changes::changes))
        .route(Group::Bulk, "/api/exports/latest", get(handlers::latest))
        .route(Group::Bulk, "/api/exports/{name}/manifest.json", get(handlers::manifest))
        .route(Group::Bulk, "/api/exports/{name}/manifest.json.minisig", get(handlers::signature))
        .route(Group::Bulk, "/api/exports/{name}/chartsets.ndjson.zst", get(handlers::chartsets))
        .route(Group::Bulk, "/api/exports/{name}/rox.tar", get(handlers::rox_files))
        .route(Group::Bulk, "/api/exports/{name}/catalogue.sqlite.zst", get(handlers::catalogue))
        .route(Group::Bulk, "/api/exports/{name}/catalogue.parquet", get(handlers::parquet))
        .with_state(Arc::new(state))
        .merge(hash_filter)
}

/// The operations of the routes. A test of the pages compares them with the routes.
#[derive(OpenApi)]
#[openapi(
    paths(
        changes::changes,
        handlers::latest,
        handlers::manifest,
        handlers::signature,
        handlers::chartsets,
        handlers::rox_files,
        handlers::catalogue,
        handlers::parquet,
        hash_filter::latest,
        hash_filter::filter
    ),
    components(schemas(
        ChangesBody<'static>,
        ChangeItem<'static>,
        ChartsetRecord,
        ExportManifest,
        ExportedFile
    ))
)]
struct BulkApi;

/// The OpenAPI document of this service: its operations and schemas.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    BulkApi::openapi()
}
