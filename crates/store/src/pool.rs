//! The connections, and the attempts that are made over them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chart_index_domain::ReadError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use tokio::time::{Instant, timeout, timeout_at};

use crate::breaker::{Breaker, wait_for_response};
use crate::error::{is_connection_failure, is_connection_lost, read_error};
use crate::lease::{Lease, Suspicion};
use crate::search_limit::SearchLimit;
use crate::{StoreConfig, StoreError};

/// How long after the time limit of a statement its connection may take to report the end.
const RESPONSE_SLACK: Duration = Duration::from_secs(1);
/// The limit of an attempt where statements have none.
const UNLIMITED: Duration = Duration::from_hours(24 * 365);
/// The connections of [`Store::monitoring`]: one to use while the other one is replaced.
const MONITORING_CONNECTIONS: u32 = 2;

/// What PostgreSQL does about a client that vanished: it ends the session after about half a minute, with its locks
/// and its transaction. On a Unix socket these settings have no effect.
const SERVER_KEEPALIVE: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "30s"),
];

/// The catalogue in PostgreSQL. Cheap to clone: every clone shares the connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    suspicion: Suspicion,
    /// `None` for monitoring, which finds out about PostgreSQL by itself.
    breaker: Option<Breaker>,
    searches: SearchLimit,
    /// Without the time limits of serving, for migrations.
    unlimited: Arc<PgConnectOptions>,
    config: Arc<StoreConfig>,
}

impl Store {
    /// A store that connects when it is first used, so it can be made while PostgreSQL is away. Needs a Tokio
    /// runtime.
    #[must_use]
    pub fn new(config: &StoreConfig) -> Self {
        Self::with_breaker(config, Some(Breaker::default()))
    }

    /// The same catalogue over connections of its own, for health checks and for those that follow changes: they go
    /// on while requests use up all connections of this store, or while its reads fail at once.
    #[must_use]
    pub fn monitoring(&self) -> Self {
        let config = StoreConfig { max_connections: MONITORING_CONNECTIONS, ..(*self.config).clone() };
        Self::with_breaker(&config, None)
    }

    fn with_breaker(config: &StoreConfig, breaker: Option<Breaker>) -> Self {
        let unlimited = config.url.options().application_name("chart-index").options(SERVER_KEEPALIVE);
        let limit = format!("{}ms", config.statement_timeout.as_millis());
        // Compiling a plan takes longer than any statement of a service should.
        let options = unlimited.clone().options([("statement_timeout", &*limit), ("jit", "off")]);
        let suspicion = Suspicion::default();
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .acquire_timeout(config.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire({
                let suspicion = suspicion.clone();
                move |connection, metadata| {
                    let suspicion = suspicion.clone();
                    Box::pin(async move { Ok(suspicion.permits(connection, metadata).await) })
                }
            })
            .connect_lazy_with(options);
        let searches = SearchLimit::new(config.max_searches.get(), config.max_connections);
        let (unlimited, config) = (Arc::new(unlimited), Arc::new(config.clone()));
        Self { pool, suspicion, breaker, searches, unlimited, config }
    }

    /// Closes every connection; calls that come later are [`ReadError::Unavailable`].
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) const fn searches(&self) -> &SearchLimit {
        &self.searches
    }

    pub(crate) fn unlimited_options(&self) -> &PgConnectOptions {
        &self.unlimited
    }

    /// Opens a connection that is not of the pool, within the time that one of the pool would have.
    pub(crate) async fn connect(&self, options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
        let limit = self.config.acquire_timeout;
        timeout(limit, PgConnection::connect_with(options)).await.unwrap_or_else(|_| Err(no_response(limit)))
    }

    /// Runs a read of a few rows by their keys, which takes milliseconds: an attempt that takes longer than
    /// [`StoreConfig::lookup_timeout`] is repeated once, on another connection.
    pub(crate) async fn lookup<T, R>(
        &self,
        operation: &'static str,
        work: impl Fn(Lease) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let limit = self.config.lookup_timeout;
        self.guard(operation, || async { self.attempt(self.lease(limit).await?, &work).await }).await
    }

    /// Runs a read that may take as long as a statement may. Its connection has to respond to a ping first: over a
    /// silent one, the timeout would come too late for a client that waits.
    pub(crate) async fn read<T, R>(
        &self,
        operation: &'static str,
        work: impl Fn(Lease) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        self.guard(operation, || async { self.attempt(self.responding_lease().await?, &work).await }).await
    }

    /// Runs a write, or a check, without repeating it: whether a transaction whose connection was lost is committed is
    /// not known.
    pub(crate) async fn run_once<T, R>(
        &self,
        operation: &'static str,
        work: impl FnOnce(Lease) -> R,
    ) -> Result<T, StoreError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        self.try_run_once(work).await.map_err(|error| StoreError::new(operation, error))
    }

    /// As [`run_once`](Self::run_once), with the error of sqlx.
    pub(crate) async fn try_run_once<T, R>(&self, work: impl FnOnce(Lease) -> R) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let result = self.attempt(self.lease(self.statement_limit()).await?, work).await;
        if result.as_ref().is_err_and(is_connection_lost) {
            self.suspicion.raise();
        }
        result
    }

    /// Makes an attempt unless the breaker is open, and a second one if the connection of the first was lost: after
    /// a restart of the server every connection of the pool is dead, and a read changes nothing, so it can simply be
    /// repeated.
    async fn guard<T, A>(&self, operation: &'static str, attempt: impl Fn() -> A) -> Result<T, ReadError>
    where
        A: Future<Output = Result<T, sqlx::Error>>,
    {
        if let Some(breaker) = &self.breaker {
            breaker.check().map_err(|open| ReadError::Unavailable { operation, source: open.into() })?;
        }
        let mut result = attempt().await;
        if let Err(error) = &result
            && is_connection_lost(error)
        {
            tracing::debug!(%error, operation, "connection lost, trying another one");
            self.suspicion.raise();
            result = attempt().await;
        }
        self.record(&result);
        result.map_err(|error| read_error(operation, error))
    }

    /// One attempt, within the deadline of its connection.
    async fn attempt<T, R>(&self, lease: Lease, work: impl FnOnce(Lease) -> R) -> Result<T, sqlx::Error>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let (start, deadline) = (Instant::now(), lease.deadline());
        timeout_at(deadline, work(lease)).await.unwrap_or_else(|_| Err(no_response(start.elapsed())))
    }

    async fn lease(&self, limit: Duration) -> Result<Lease, sqlx::Error> {
        let connection = self.pool.acquire().await?;
        Ok(Lease::new(connection, Instant::now() + limit, self.suspicion.clone()))
    }

    async fn responding_lease(&self) -> Result<Lease, sqlx::Error> {
        let mut lease = self.lease(self.statement_limit()).await?;
        if !lease.responds().await {
            self.suspicion.raise();
            drop(lease);
            lease = self.lease(self.statement_limit()).await?;
        }
        Ok(lease)
    }

    /// How long an attempt may take whose statement has the time limit of the configuration.
    fn statement_limit(&self) -> Duration {
        match self.config.statement_timeout {
            Duration::ZERO => UNLIMITED,
            limit => limit + RESPONSE_SLACK,
        }
    }

    /// Counts the outcome of a read for the breaker.
    fn record<T>(&self, result: &Result<T, sqlx::Error>) {
        let Some(breaker) = &self.breaker else { return };
        match result {
            Err(error) if is_connection_failure(error) => {
                if breaker.failed() {
                    self.close_when_postgresql_responds(breaker.clone(), error);
                }
            }
            _ => breaker.succeeded(),
        }
    }

    fn close_when_postgresql_responds(&self, breaker: Breaker, error: &sqlx::Error) {
        tracing::warn!(%error, "PostgreSQL is unavailable");
        let (options, suspicion) = (Arc::clone(&self.unlimited), self.suspicion.clone());
        // Not the pool itself: its connections end with the last store.
        let mut closed = self.pool.close_event();
        tokio::spawn(async move {
            // An error when the pool is closed first.
            let Ok(outage) = closed.do_until(wait_for_response(&options)).await else { return };
            suspicion.raise();
            breaker.close();
            tracing::info!(outage_ms = outage.as_millis(), "PostgreSQL responds again");
        });
    }
}

fn no_response(limit: Duration) -> sqlx::Error {
    let message = format!("no response within {} ms", limit.as_millis());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}
