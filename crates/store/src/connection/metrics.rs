//! The metrics of the store (docs/operations/metrics.md): operations, connections, outdated prepared
//! statements.

use std::sync::Arc;

use chart_index_instrumentation::{Counter, DatabaseClient, ErrorType, Histogram, metrics};
use strum::IntoStaticStr;
use tokio::time::Instant;

use crate::connection::connection_pool::ConnectionPool;
use crate::error::is_not_connected;

/// The connection pools of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum PoolName {
    /// The pool of requests, or of an ingest.
    Requests,
    /// The pool of [`Store::monitoring`](crate::Store::monitoring).
    Monitoring,
    /// The pool of requests to the standby.
    Standby,
    /// The pool of polls of the standby.
    StandbyMonitoring,
}

/// What a store records.
#[derive(Debug)]
pub(crate) struct StoreMetrics {
    client: DatabaseClient,
    wait_time: Histogram,
    timeouts: Counter,
    plan_errors: Counter,
}

impl StoreMetrics {
    pub(crate) fn new(pool: PoolName) -> Self {
        let (metrics, pool) = (metrics(), pool.into_str());
        Self {
            client: DatabaseClient::new("postgresql"),
            wait_time: metrics.db_client_connection_wait_time_seconds.with([pool]),
            timeouts: metrics.db_client_connection_timeouts_total.with([pool]),
            plan_errors: metrics.chart_index_postgresql_plan_errors_total.with([]),
        }
    }

    /// Runs an operation in a span and records its duration, which includes the wait for a connection and a
    /// retry.
    pub(crate) fn observe<T, E>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, E>>,
        error_type: impl FnOnce(&E) -> ErrorType,
    ) -> impl Future<Output = Result<T, E>> {
        // On the heap, since a future contains those that it was made of twice.
        self.client.observe(operation, Box::pin(work), error_type)
    }

    /// Records the wait for a connection since `began`.
    pub(crate) fn record_wait<T>(&self, began: Instant, connection: &Result<T, sqlx::Error>) {
        match connection {
            Ok(_) => self.wait_time.observe(began.elapsed().as_secs_f64()),
            Err(error) if matches!(error, sqlx::Error::PoolTimedOut) || is_not_connected(error) => {
                self.timeouts.inc();
            }
            Err(_) => {}
        }
    }

    pub(crate) fn count_plan_error(&self) {
        self.plan_errors.inc();
    }
}

/// Reports the connections of the pool for as long as it exists.
pub(crate) fn observe_pool(name: PoolName, pool: &Arc<ConnectionPool>, max_connections: u32) {
    let name = name.into_str();
    metrics().observe(pool, move |pool, metrics| {
        let (open, idle) = pool.open_and_idle();
        metrics.db_client_connection_open.set([name, "idle"], idle);
        metrics.db_client_connection_open.set([name, "used"], open - idle);
        metrics.db_client_connection_max.set([name], max_connections);
    });
}
