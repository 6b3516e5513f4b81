//! A PostgreSQL server: its connection pool, and attempts of statements on it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, timeout_at};

use crate::StoreConfig;
use crate::connection::connection_health::ConnectionHealth;
use crate::connection::connection_pool::ConnectionPool;
use crate::connection::metrics::{PoolName, StoreMetrics, observe_pool};
use crate::connection::pooled_connection::PooledConnection;
use crate::connection::server_identity::ExpectedServer;
use crate::error::{is_connection_lost, is_plan_error};
use crate::time_limit::no_response;

/// Time after `statement_timeout` for the response to arrive.
const RESPONSE_SLACK: Duration = Duration::from_secs(1);
/// Limit of an attempt if statements have none.
const UNLIMITED: Duration = Duration::from_hours(24 * 365);

/// Makes PostgreSQL end a session about half a minute after its client vanished, with its locks and its
/// transaction. On a Unix socket these settings have no effect.
const SERVER_KEEPALIVE: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "30s"),
];

/// How long an attempt of a read may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadLength {
    /// Up to [`StoreConfig::lookup_timeout`].
    Short,
    /// Up to [`StoreConfig::statement_timeout`]. Its connection is pinged first: on a half-open one, the
    /// timeout would come too late for a waiting client.
    Long,
}

/// A server and the pool of connections to it. Clones are cheap and share the connections.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// Shared, so that the metrics of the pool do not keep it open.
    pool: Arc<ConnectionPool>,
    pub(crate) health: ConnectionHealth,
    /// Options without `statement_timeout`, for migrations and other long-lived connections.
    unlimited: Arc<PgConnectOptions>,
    config: Arc<StoreConfig>,
    pub(crate) metrics: Arc<StoreMetrics>,
}

impl Server {
    /// Creates the pool, which connects when it is first used: only to the expected server, if there is one.
    pub(crate) fn new(config: &StoreConfig, name: PoolName, expected: Option<Arc<ExpectedServer>>) -> Self {
        let unlimited = config.url.options().application_name("chart-index").options(SERVER_KEEPALIVE);
        let health = ConnectionHealth::default();
        let pool = Arc::new(connection_pool(config, &unlimited, &health, expected));
        observe_pool(name, &pool, config.max_connections);
        let (unlimited, config) = (Arc::new(unlimited), Arc::new(config.clone()));
        Self { pool, health, unlimited, config, metrics: Arc::new(StoreMetrics::new(name)) }
    }

    pub(crate) fn config(&self) -> &StoreConfig {
        &self.config
    }

    pub(crate) const fn unlimited_options(&self) -> &Arc<PgConnectOptions> {
        &self.unlimited
    }

    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// Makes an attempt of a read.
    pub(crate) async fn read<T, R>(
        &self,
        length: ReadLength,
        work: impl FnOnce(PooledConnection) -> R,
    ) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let connection = match length {
            ReadLength::Short => self.acquire(self.config.lookup_timeout).await?,
            ReadLength::Long => self.acquire_responding().await?,
        };
        attempt(connection, work).await
    }

    /// Makes an attempt of a write, or of a check.
    pub(crate) async fn write<T, R>(&self, work: impl FnOnce(PooledConnection) -> R) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        attempt(self.acquire(self.statement_limit()).await?, work).await
    }

    /// Makes sure that connections that the cause of the error affects are closed, not reused. Returns whether
    /// another connection may succeed.
    pub(crate) fn retire_connections(&self, error: &sqlx::Error) -> bool {
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
}

/// Makes one attempt, up to the deadline of its connection.
async fn attempt<T, R>(
    connection: PooledConnection,
    work: impl FnOnce(PooledConnection) -> R,
) -> Result<T, sqlx::Error>
where
    R: Future<Output = Result<T, sqlx::Error>>,
{
    let (start, deadline) = (Instant::now(), connection.deadline());
    timeout_at(deadline, work(connection)).await.unwrap_or_else(|_| Err(no_response(start.elapsed())))
}

fn connection_pool(
    config: &StoreConfig,
    options: &PgConnectOptions,
    health: &ConnectionHealth,
    expected: Option<Arc<ExpectedServer>>,
) -> ConnectionPool {
    let limit = format!("{}ms", config.statement_timeout.as_millis());
    // JIT compilation takes longer than a statement of a service should. A rollback without a transaction is a
    // warning.
    let settings = [("statement_timeout", &*limit), ("jit", "off"), ("client_min_messages", "error")];
    let options = options.clone().options(settings);
    ConnectionPool::new(options, health.clone(), config.max_connections, config.acquire_timeout, expected)
}
