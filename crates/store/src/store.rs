//! [`Store`]: the connection pool, and the timeouts and retries of every statement.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chart_index_domain::ReadError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, timeout_at};

use crate::circuit_breaker::{CircuitBreaker, wait_for_response};
use crate::connection_health::ConnectionHealth;
use crate::connection_pool::ConnectionPool;
use crate::error::{
    error_type, is_connection_failure, is_connection_lost, is_plan_error, read_error, read_error_type,
};
use crate::metrics::{PoolName, StoreMetrics, observe_pool};
use crate::pooled_connection::PooledConnection;
use crate::time_limit::{no_response, with_time_limit};
use crate::{StoreConfig, StoreError};

/// Time after `statement_timeout` for the response to arrive.
const RESPONSE_SLACK: Duration = Duration::from_secs(1);
/// Limit of an attempt if statements have none.
const UNLIMITED: Duration = Duration::from_hours(24 * 365);
/// Number of connections of [`Store::monitoring`]: one in use while the other one is replaced.
const MONITORING_CONNECTIONS: u32 = 2;

/// Makes PostgreSQL end a session about half a minute after its client vanished, with its locks and its
/// transaction. On a Unix socket these settings have no effect.
const SERVER_KEEPALIVE: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "30s"),
];

/// The catalogue in PostgreSQL. Clones are cheap and share the connections.
#[derive(Debug, Clone)]
pub struct Store {
    /// Shared, so that the metrics of the pool do not keep it open.
    pool: Arc<ConnectionPool>,
    health: ConnectionHealth,
    /// `None` for monitoring, which detects outages by itself.
    breaker: Option<CircuitBreaker>,
    /// Options without `statement_timeout`, for migrations and other long-lived connections.
    unlimited: Arc<PgConnectOptions>,
    config: Arc<StoreConfig>,
    metrics: Arc<StoreMetrics>,
}

impl Store {
    /// Creates a store. It connects when it is first used, so PostgreSQL may be unavailable. Needs a Tokio
    /// runtime.
    #[must_use]
    pub fn new(config: &StoreConfig) -> Self {
        Self::with_breaker(config, PoolName::Requests, Some(CircuitBreaker::default()))
    }

    /// Returns a store of the same catalogue with connections of its own, for health checks and for following
    /// changes. It works while requests use all connections of this store, or while the circuit breaker of this
    /// store is open.
    #[must_use]
    pub fn monitoring(&self) -> Self {
        let config = StoreConfig { max_connections: MONITORING_CONNECTIONS, ..(*self.config).clone() };
        Self::with_breaker(&config, PoolName::Monitoring, None)
    }

    fn with_breaker(config: &StoreConfig, name: PoolName, breaker: Option<CircuitBreaker>) -> Self {
        let unlimited = config.url.options().application_name("chart-index").options(SERVER_KEEPALIVE);
        let health = ConnectionHealth::default();
        let pool = Arc::new(connection_pool(config, &unlimited, &health));
        observe_pool(name, &pool, config.max_connections);
        let (unlimited, config) = (Arc::new(unlimited), Arc::new(config.clone()));
        Self { pool, health, breaker, unlimited, config, metrics: Arc::new(StoreMetrics::new(name)) }
    }

    /// Closes the idle connections, and those in use when their reads or writes end. Later calls return
    /// [`ReadError::Unavailable`].
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) fn unlimited_options(&self) -> &PgConnectOptions {
        &self.unlimited
    }

    /// Opens a connection outside of the pool, with the same timeout.
    pub(crate) async fn connect(&self, options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
        with_time_limit(self.config.acquire_timeout, PgConnection::connect_with(options)).await
    }

    /// Runs a read that takes milliseconds, such as that of a few rows by key. An attempt that takes longer
    /// than [`StoreConfig::lookup_timeout`] is retried once on another connection. Longer reads use
    /// [`long_read`](Self::long_read).
    pub(crate) async fn short_read<T, R>(
        &self,
        operation: &'static str,
        work: impl Fn(PooledConnection) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let limit = self.config.lookup_timeout;
        self.guard(operation, || async { self.attempt(self.acquire(limit).await?, &work).await }).await
    }

    /// Runs a read that may take up to [`StoreConfig::statement_timeout`], such as that of many rows. Its
    /// connection is pinged first: on a half-open one, the timeout would come too late for a waiting client.
    pub(crate) async fn long_read<T, R>(
        &self,
        operation: &'static str,
        work: impl Fn(PooledConnection) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        self.guard(operation, || async { self.attempt(self.acquire_responding().await?, &work).await }).await
    }

    /// Runs a write, or a check, without a retry: if the connection is lost, the transaction may have been
    /// committed.
    pub(crate) async fn run_once<T, R>(
        &self,
        operation: &'static str,
        work: impl FnOnce(PooledConnection) -> R,
    ) -> Result<T, StoreError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        self.try_run_once(operation, work).await.map_err(|error| StoreError::new(operation, error))
    }

    /// Like [`run_once`](Self::run_once), but returns the error of sqlx.
    pub(crate) async fn try_run_once<T, R>(
        &self,
        operation: &'static str,
        work: impl FnOnce(PooledConnection) -> R,
    ) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let run = async {
            let result = self.attempt(self.acquire(self.statement_limit()).await?, work).await;
            if let Err(error) = &result {
                self.retire_connections(error);
            }
            result
        };
        self.metrics.observe(operation, run, error_type).await
    }

    /// Makes an attempt unless the breaker is open, and a second one if another connection may succeed: a
    /// restart of the server breaks every connection of the pool, a migration may invalidate prepared
    /// statements, and a read is safe to retry.
    async fn guard<T, A>(&self, operation: &'static str, attempt: impl Fn() -> A) -> Result<T, ReadError>
    where
        A: Future<Output = Result<T, sqlx::Error>>,
    {
        let read = async {
            if let Some(breaker) = &self.breaker {
                breaker.check().map_err(|open| ReadError::Unavailable { operation, source: open.into() })?;
            }
            let mut result = attempt().await;
            if let Err(error) = &result
                && self.retire_connections(error)
            {
                tracing::debug!(%error, operation, "retrying on another connection");
                result = attempt().await;
            }
            self.record(&result);
            result.map_err(|error| read_error(operation, error))
        };
        self.metrics.observe(operation, read, read_error_type).await
    }

    /// Makes sure that connections that the cause of the error affects are closed, not reused. Returns whether
    /// another connection may succeed.
    fn retire_connections(&self, error: &sqlx::Error) -> bool {
        if is_plan_error(error) {
            self.metrics.count_plan_error();
            self.health.record_plan_error();
            return true;
        }
        let is_lost = is_connection_lost(error);
        if is_lost {
            self.health.record_failure();
        }
        is_lost
    }

    /// Makes one attempt, up to the deadline of its connection.
    async fn attempt<T, R>(
        &self,
        connection: PooledConnection,
        work: impl FnOnce(PooledConnection) -> R,
    ) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let (start, deadline) = (Instant::now(), connection.deadline());
        timeout_at(deadline, work(connection)).await.unwrap_or_else(|_| Err(no_response(start.elapsed())))
    }

    async fn acquire(&self, limit: Duration) -> Result<PooledConnection, sqlx::Error> {
        let began = Instant::now();
        let connection = self.pool.acquire().await;
        self.metrics.record_wait(began, &connection);
        Ok(PooledConnection::new(connection?, Instant::now() + limit, self.health.clone()))
    }

    async fn acquire_responding(&self) -> Result<PooledConnection, sqlx::Error> {
        let mut connection = self.acquire(self.statement_limit()).await?;
        if !connection.check().await {
            self.health.record_failure();
            drop(connection);
            connection = self.acquire(self.statement_limit()).await?;
        }
        Ok(connection)
    }

    /// The limit of an attempt whose statement has the configured `statement_timeout`.
    fn statement_limit(&self) -> Duration {
        match self.config.statement_timeout {
            Duration::ZERO => UNLIMITED,
            limit => limit + RESPONSE_SLACK,
        }
    }

    /// Records the result of a read in the breaker.
    fn record<T>(&self, result: &Result<T, sqlx::Error>) {
        let Some(breaker) = &self.breaker else { return };
        match result {
            Err(error) if is_connection_failure(error) => {
                if breaker.record_failure() {
                    self.close_when_postgresql_responds(breaker.clone(), error);
                }
            }
            _ => breaker.record_success(),
        }
    }

    fn close_when_postgresql_responds(&self, breaker: CircuitBreaker, error: &sqlx::Error) {
        tracing::warn!(%error, "PostgreSQL is unavailable");
        let (options, health) = (Arc::clone(&self.unlimited), self.health.clone());
        // Not the pool itself, so that its connections are closed with the last store.
        let closed = self.pool.closed().clone();
        tokio::spawn(async move {
            let responds = wait_for_response(&options);
            let Some(outage) = closed.run_until_cancelled(responds).await else { return };
            health.record_failure();
            breaker.close();
            tracing::info!(outage_ms = outage.as_millis(), "PostgreSQL responds again");
        });
    }
}

fn connection_pool(
    config: &StoreConfig,
    options: &PgConnectOptions,
    health: &ConnectionHealth,
) -> ConnectionPool {
    let limit = format!("{}ms", config.statement_timeout.as_millis());
    // JIT compilation takes longer than a statement of a service should. A rollback without a transaction is a
    // warning.
    let settings = [("statement_timeout", &*limit), ("jit", "off"), ("client_min_messages", "error")];
    let options = options.clone().options(settings);
    ConnectionPool::new(options, health.clone(), config.max_connections, config.acquire_timeout)
}
