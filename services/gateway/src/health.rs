//! The routes of the private listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use chart_index_http::ApiError;
use chart_index_store::Store;
use tokio::time::timeout;

/// How long the database may take to answer before it counts as away.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether this process should be sent requests.
#[derive(Debug, Clone)]
pub(crate) struct Readiness {
    store: Store,
    is_draining: Arc<AtomicBool>,
}

impl Readiness {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, is_draining: Arc::default() }
    }

    /// From now on: no.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }
}

/// The routes: `/livez` says that the process answers, `/readyz` that it should be sent requests.
pub(crate) fn router(readiness: Readiness) -> Router {
    Router::new().route("/livez", get(async || "ok\n")).route("/readyz", get(readyz)).with_state(readiness)
}

async fn readyz(State(readiness): State<Readiness>) -> Result<&'static str, ApiError> {
    if readiness.is_draining.load(Ordering::Relaxed) {
        return Err(ApiError::ShuttingDown);
    }
    match timeout(PING_TIMEOUT, readiness.store.ping()).await {
        Ok(pong) => pong?,
        Err(elapsed) => return Err(ApiError::Unavailable(elapsed.into())),
    }
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
        let request = Request::get(path).body(Body::empty()).unwrap();
        let routes = chart_index_http::private(router(readiness.clone()));
        routes.oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_process_lives_while_the_database_is_away_but_is_not_ready() {
        // Nothing listens on port 1.
        let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
        let readiness = Readiness::new(store);
        assert_eq!(status(&readiness, "/livez").await, 200);
        assert_eq!(status(&readiness, "/readyz").await, 503);
        readiness.drain();
        assert_eq!(status(&readiness, "/livez").await, 200);
        assert_eq!(status(&readiness, "/readyz").await, 503);
    }
}
