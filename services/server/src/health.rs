//! The readiness of the process, at `/readyz` of the private listener (docs/operations/monitoring.md,
//! "Health").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::routing::{MethodRouter, get};
use chart_index_http::ApiError;
use chart_index_instrumentation::metrics;
use chart_index_store::Store;
use tokio::time::timeout;

use crate::arguments::Service;

/// Maximum time of a schema check.
const SCHEMA_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether this process should receive requests: it has seen the schema of its version once and is not
/// draining.
///
/// A later outage of the database does not make a process unready: every replica would be, and none could serve
/// what is cached.
#[derive(Debug, Clone)]
pub(crate) struct Readiness {
    store: Store,
    state: Arc<ReadinessState>,
}

#[derive(Debug, Default)]
struct ReadinessState {
    /// The names of the services, in the body of a response.
    services: String,
    has_seen_schema: AtomicBool,
    is_draining: AtomicBool,
}

impl Readiness {
    /// Starts as not ready. Takes a monitoring store, so that checks do not wait for requests.
    pub(crate) fn new(store: Store, services: &[Service]) -> Self {
        let services = services.iter().map(|service| service.name() + "\n").collect();
        let state = Arc::new(ReadinessState { services, ..ReadinessState::default() });
        metrics().observe(&state, |state, metrics| {
            metrics.chart_index_ready.set([], state.is_ready());
            metrics.chart_index_draining.set([], state.is_draining());
        });
        Self { store, state }
    }

    /// Makes the process unready permanently.
    pub(crate) fn drain(&self) {
        self.state.is_draining.store(true, Ordering::Relaxed);
    }

    /// Succeeds if the process is ready. Waits for the database at most [`SCHEMA_CHECK_TIMEOUT`].
    pub(crate) async fn check(&self) -> Result<(), ApiError> {
        if self.state.is_draining() {
            return Err(ApiError::ShuttingDown);
        }
        if self.state.has_seen_schema.load(Ordering::Relaxed) {
            return Ok(());
        }
        let checked = timeout(SCHEMA_CHECK_TIMEOUT, self.store.check_schema()).await;
        checked.map_err(|_| ApiError::Unavailable(self.no_response().into()))??;
        self.state.has_seen_schema.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Why a check has not ended in time.
    fn no_response(&self) -> String {
        let failure = self.store.connection_failure();
        failure.unwrap_or_else(|| format!("PostgreSQL has not responded within {SCHEMA_CHECK_TIMEOUT:?}"))
    }
}

impl ReadinessState {
    fn is_ready(&self) -> bool {
        self.has_seen_schema.load(Ordering::Relaxed) && !self.is_draining()
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// `/readyz` is 200 while the process should receive requests. The body is a line with the name of each
/// service: a load balancer with one backend for each must not take a replica of another one for its own, which
/// may have got its address.
pub(crate) fn readyz(readiness: Readiness) -> MethodRouter {
    get(check).with_state(readiness)
}

async fn check(State(readiness): State<Readiness>) -> Result<String, ApiError> {
    readiness.check().await?;
    Ok(readiness.state.services.clone())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{Request, Response};
    use chart_index_store::StoreConfig;
    use tower::ServiceExt;

    use super::*;

    async fn respond(readiness: &Readiness) -> Response<Body> {
        readyz(readiness.clone()).oneshot(Request::new(Body::empty())).await.unwrap()
    }

    #[tokio::test]
    async fn process_is_not_ready_before_the_schema_or_when_draining() {
        // Nothing listens on port 1.
        let store = Store::new(&StoreConfig::new("postgres://user@127.0.0.1:1/none".parse().unwrap()));
        let readiness = Readiness::new(store, &[Service::Lookup, Service::Bulk]);
        assert_eq!(respond(&readiness).await.status(), 503);
        readiness.state.has_seen_schema.store(true, Ordering::Relaxed);
        let ready = respond(&readiness).await;
        assert_eq!(ready.status(), 200);
        assert_eq!(to_bytes(ready.into_body(), 100).await.unwrap(), "lookup\nbulk\n");
        readiness.drain();
        assert_eq!(respond(&readiness).await.status(), 503);
    }
}
