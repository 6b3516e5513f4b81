//! The bulk service: what mirrors and programs with many charts read.

use std::sync::Arc;

use chart_index_http::{ResponseCache, Routes};
use chart_index_store::Store;
use tokio::runtime::Handle;
use utoipa::OpenApi;

/// The state of the handlers.
#[derive(Debug)]
pub struct BulkState {
    /// The catalogue.
    pub store: Store,
    /// The rate limits and the response cache.
    pub cache: ResponseCache,
    /// The runtime for work that takes milliseconds of processor time.
    pub background: Handle,
}

/// The routes of the service.
#[must_use]
pub fn routes(state: BulkState) -> Routes {
    Routes::new(state.cache.rate_limiter()).with_state(Arc::new(state))
}

/// The operations of the routes. `utoipa-axum` would collect them while it builds an `axum::Router`; [`Routes`] is a table of its
/// own. A test of the pages compares both.
#[derive(OpenApi)]
#[openapi()]
struct Document;

/// The OpenAPI document of this service: its operations and schemas.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
