//! The routes of the private listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::routing::get;
use axum::{Router, extract};
use chart_index_http::ApiError;
use chart_index_store::Store;
use tokio::time::timeout;

/// How long the check of the schema may take.
const SCHEMA_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether this process should be sent requests: it has seen the schema of its version once since it started, and is
/// not draining.
///
/// What happens to the database afterwards does not count. Cached responses are served without it, and taking every
/// replica out of rotation at the same time would lose those as well.
#[derive(Debug, Clone)]
pub(crate) struct Readiness {
    store: Store,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    has_seen_schema: AtomicBool,
    is_draining: AtomicBool,
}

impl Readiness {
    /// Not ready yet. The store should be one for monitoring, so that the check does not wait behind requests.
    pub(crate) fn new(store: Store) -> Self {
        Self { store, state: Arc::default() }
    }

    /// Not ready any more, for good.
    pub(crate) fn drain(&self) {
        self.state.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether this process is ready now. Waits no longer than [`SCHEMA_CHECK_TIMEOUT`] for the database.
    pub(crate) async fn check(&self) -> Result<(), ApiError> {
        if self.state.is_draining.load(Ordering::Relaxed) {
            return Err(ApiError::ShuttingDown);
        }
        if self.state.has_seen_schema.load(Ordering::Relaxed) {
            return Ok(());
        }
        let checked = timeout(SCHEMA_CHECK_TIMEOUT, self.store.ping()).await;
        checked.map_err(|elapsed| ApiError::Unavailable(elapsed.into()))??;
        self.state.has_seen_schema.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The routes: `/livez` responds while the process runs, `/readyz` while it should be sent requests.
pub(crate) fn router(readiness: Readiness) -> Router {
    Router::new().route("/livez", get(async || "ok\n")).route("/readyz", get(readyz)).with_state(readiness)
}

async fn readyz(extract::State(readiness): extract::State<Readiness>) -> Result<&'static str, ApiError> {
    readiness.check().await?;
    Ok("ok\n")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use chart_index_store::StoreConfig;
    use tower::ServiceExt;

    use super::*;

    async fn status(readiness: &Readiness, path: &str) -> u16 {
        let request = Request::get(path).header("host", "test").body(Body::empty()).unwrap();
        let routes = chart_index_http::private_router(router(readiness.clone()));
        routes.oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_process_is_live_and_not_ready_before_it_has_seen_the_schema() {
        // Nothing listens on port 1.
        let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
        let readiness = Readiness::new(store);
        assert_eq!(status(&readiness, "/livez").await, 200);
        assert_eq!(status(&readiness, "/readyz").await, 503);
        readiness.state.has_seen_schema.store(true, Ordering::Relaxed);
        assert_eq!(status(&readiness, "/readyz").await, 200);
        readiness.drain();
        assert_eq!(status(&readiness, "/livez").await, 200);
        assert_eq!(status(&readiness, "/readyz").await, 503);
    }
}
