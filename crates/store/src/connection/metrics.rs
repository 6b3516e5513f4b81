//! The metrics of the store (docs/operations/metrics.md): operations, connections, outdated prepared
//! statements.

use std::sync::Arc;
use std::time::Duration;

use chart_index_instrumentation::{DATABASE_BUCKETS, DatabaseClient, ErrorType, meter};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram};
use tokio::time::Instant;

use crate::connection::connection_pool::ConnectionPool;
use crate::error::is_not_connected;

/// The connection pools of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl PoolName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Monitoring => "monitoring",
            Self::Standby => "standby",
            Self::StandbyMonitoring => "standby_monitoring",
        }
    }

    fn label(self) -> KeyValue {
        KeyValue::new("db.client.connection.pool.name", self.as_str())
    }
}

/// The instruments of a store.
#[derive(Debug)]
pub(crate) struct StoreMetrics {
    client: DatabaseClient,
    wait_time: BoundHistogram<f64>,
    timeouts: BoundCounter<u64>,
    plan_errors: BoundCounter<u64>,
}

impl StoreMetrics {
    pub(crate) fn new(pool: PoolName) -> Self {
        let wait_time = meter()
            .f64_histogram("db.client.connection.wait_time")
            .with_unit("s")
            .with_description("Time to get a connection from the pool")
            .with_boundaries(DATABASE_BUCKETS.to_vec())
            .build();
        let timeouts = meter()
            .u64_counter("db.client.connection.timeouts")
            .with_unit("{timeout}")
            .with_description("Operations that got no connection in time")
            .build();
        let plan_errors = meter()
            .u64_counter("chart_index.postgresql.plan_errors")
            .with_unit("{error}")
            .with_description("Prepared statements that PostgreSQL does not know or can no longer run")
            .build();
        // The SDK exports a counter without labels only after an addition: otherwise rates would miss the first
        // error.
        plan_errors.add(0, &[]);
        let label = [pool.label()];
        Self {
            client: DatabaseClient::new("postgresql"),
            wait_time: wait_time.bind(&label),
            timeouts: timeouts.bind(&label),
            plan_errors: plan_errors.bind(&[]),
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
            Ok(_) => self.wait_time.record(began.elapsed().as_secs_f64()),
            Err(error) if matches!(error, sqlx::Error::PoolTimedOut) || is_not_connected(error) => {
                self.timeouts.add(1);
            }
            Err(_) => {}
        }
    }

    pub(crate) fn count_plan_error(&self) {
        self.plan_errors.add(1);
    }
}

/// Reports the connections of the pool for as long as it exists.
pub(crate) fn observe_pool(name: PoolName, pool: &Arc<ConnectionPool>, max_connections: u32) {
    let (label, weak) = (name.label(), Arc::downgrade(pool));
    let state = |state| [label.clone(), KeyValue::new("db.client.connection.state", state)];
    let (idle, used) = (state("idle"), state("used"));
    meter()
        .u64_observable_gauge("db.client.connection.open")
        .with_unit("{connection}")
        .with_description("Open connections of the pool")
        .with_callback(move |observer| {
            let Some(pool) = weak.upgrade() else { return };
            let (open, idle_connections) = pool.open_and_idle();
            observer.observe(idle_connections as u64, &idle);
            observer.observe((open - idle_connections) as u64, &used);
        })
        .build();
    let weak = Arc::downgrade(pool);
    meter()
        .u64_observable_gauge("db.client.connection.max")
        .with_unit("{connection}")
        .with_description("Maximum number of open connections of the pool")
        .with_callback(move |observer| {
            if weak.strong_count() > 0 {
                observer.observe(max_connections.into(), std::slice::from_ref(&label));
            }
        })
        .build();
}

/// Reports whether PostgreSQL is available; nothing when `is_available` returns `None`.
pub(crate) fn observe_availability(is_available: impl Fn() -> Option<bool> + Send + Sync + 'static) {
    meter()
        .u64_observable_gauge("chart_index.postgresql.available")
        .with_description("Whether the catalogue was polled within the last 5 seconds")
        .with_callback(move |observer| {
            if let Some(is_available) = is_available() {
                observer.observe(is_available.into(), &[]);
            }
        })
        .build();
}

/// Reports whether reads use the standby, and its lag, for as long as there are values.
pub(crate) fn observe_standby(state: impl Fn() -> Option<(bool, Duration)> + Clone + Send + Sync + 'static) {
    let lag = state.clone();
    meter()
        .u64_observable_gauge("chart_index.postgresql.standby.in_use")
        .with_description("Whether reads use the standby")
        .with_callback(move |observer| {
            if let Some((is_current, _)) = state() {
                observer.observe(is_current.into(), &[]);
            }
        })
        .build();
    meter()
        .f64_observable_gauge("chart_index.postgresql.standby.lag")
        .with_unit("s")
        .with_description("Time since the primary had only what the standby has")
        .with_callback(move |observer| {
            if let Some((_, lag)) = lag() {
                observer.observe(lag.as_secs_f64(), &[]);
            }
        })
        .build();
}
