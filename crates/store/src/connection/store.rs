//! [`Store`]: the servers of the catalogue, and the retries of every statement.

use std::future::Future;
use std::sync::Arc;

use chart_index_domain::ReadError;
use chart_index_objects::Objects;
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;

use crate::connection::circuit_breaker::{CircuitBreaker, wait_for_response};
use crate::connection::connection_pool::connect;
use crate::connection::metrics::PoolName;
use crate::connection::pooled_connection::PooledConnection;
use crate::connection::server::{ReadLength, Server};
use crate::connection::standby::Standby;
use crate::error::{error_type, is_connection_failure, read_error, read_error_type};
use crate::time_limit::with_time_limit;
use crate::{DatabaseUrl, StoreConfig, StoreError};

/// Number of connections of [`Store::monitoring`]: one in use while the other one is replaced.
const MONITORING_CONNECTIONS: u32 = 2;

/// The catalogue in PostgreSQL. Clones are cheap and share the connections.
#[derive(Debug, Clone)]
pub struct Store {
    server: Server,
    /// `None` for monitoring, which detects outages by itself.
    breaker: Option<CircuitBreaker>,
    /// Serves reads while it is current, and while the primary is unavailable.
    standby: Option<Standby>,
    /// Where new files are stored, and those that rows name; `None` if all are in PostgreSQL.
    objects: Option<Objects>,
}

impl Store {
    /// Creates a store. It connects when it is first used, so PostgreSQL may be unavailable. Needs a Tokio
    /// runtime.
    #[must_use]
    pub fn new(config: &StoreConfig) -> Self {
        let server = Server::new(config, PoolName::Requests, None);
        Self { server, breaker: Some(CircuitBreaker::default()), standby: None, objects: None }
    }

    /// Lets a streaming standby serve reads, with as many connections. It is not used until a
    /// [`CatalogueWatch`](crate::CatalogueWatch) that polls it has shown that it is current.
    #[must_use]
    pub fn with_standby(self, url: DatabaseUrl) -> Self {
        let requests = StoreConfig { url, ..self.server.config().clone() };
        let monitoring = monitoring_config(&requests);
        Self { standby: Some(Standby::new(&requests, &monitoring)), ..self }
    }

    /// Lets new files be stored as objects, and files be read from them.
    #[must_use]
    pub fn with_objects(self, objects: Objects) -> Self {
        Self { objects: Some(objects), ..self }
    }

    /// The object store, if there is one.
    #[must_use]
    pub const fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// The standby, for [`CatalogueWatch::start`](crate::CatalogueWatch::start).
    #[must_use]
    pub fn standby(&self) -> Option<Standby> {
        self.standby.clone()
    }

    /// Returns a store of the same catalogue with connections of its own, for health checks and for following
    /// changes. It works while requests use all connections of this store, or while the circuit breaker of this
    /// store is open. It reads from the primary only.
    #[must_use]
    pub fn monitoring(&self) -> Self {
        let config = monitoring_config(self.server.config());
        let server = Server::new(&config, PoolName::Monitoring, None);
        Self { server, breaker: None, standby: None, objects: None }
    }

    /// This store without its standby, if it has one: for what the standby may lack.
    pub(crate) fn primary_of_standby(&self) -> Option<Self> {
        self.standby.is_some().then(|| Self { standby: None, ..self.clone() })
    }

    /// Why the last attempt to connect failed. `None` after one that succeeded.
    #[must_use]
    pub fn connection_failure(&self) -> Option<String> {
        self.server.pool().connection_failure()
    }

    /// Closes the idle connections, and those in use when their reads or writes end. Later calls return
    /// [`ReadError::Unavailable`].
    pub async fn close(&self) {
        self.server.pool().close().await;
        if let Some(standby) = &self.standby {
            standby.close().await;
        }
    }

    pub(crate) fn unlimited_options(&self) -> &PgConnectOptions {
        self.server.unlimited_options()
    }

    /// Opens a connection outside of the pool, with the same timeout.
    pub(crate) async fn connect(&self, options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
        with_time_limit(self.server.config().acquire_timeout, connect(options)).await
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
        self.read(operation, ReadLength::Short, work).await
    }

    /// Runs a read that may take up to [`StoreConfig::statement_timeout`], such as that of many rows.
    pub(crate) async fn long_read<T, R>(
        &self,
        operation: &'static str,
        work: impl Fn(PooledConnection) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        self.read(operation, ReadLength::Long, work).await
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
        let run = async {
            let result = self.server.write(work).await;
            if let Err(error) = &result {
                self.server.retire_connections(error);
            }
            result
        };
        let result = self.server.metrics.observe(operation, run, error_type).await;
        result.map_err(|error| StoreError::new(operation, error))
    }

    /// Reads from the standby if it is current, else, or if it fails, from the primary.
    pub(super) async fn read<T, R>(
        &self,
        operation: &'static str,
        length: ReadLength,
        work: impl Fn(PooledConnection) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let read = async {
            if let Some(standby) = self.standby.as_ref().filter(|standby| standby.is_current())
                && let Some(result) = standby.read(length, &work).await
            {
                return result.map_err(|error| read_error(operation, error));
            }
            self.read_from_primary(operation, length, work).await
        };
        self.server.metrics.observe(operation, read, read_error_type).await
    }

    /// Makes an attempt unless the breaker is open, and a second one if another connection may succeed: a
    /// restart of the server breaks every connection of the pool, a migration may invalidate prepared
    /// statements, and a read is safe to retry. While the primary is unavailable, the standby is read instead,
    /// if it has what was last known of the primary.
    async fn read_from_primary<T, R>(
        &self,
        operation: &'static str,
        length: ReadLength,
        work: impl Fn(PooledConnection) -> R,
    ) -> Result<T, ReadError>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let standby = || self.standby.as_ref().filter(|standby| standby.may_replace_primary());
        if let Some(breaker) = &self.breaker
            && let Err(open) = breaker.check()
        {
            if let Some(standby) = standby()
                && let Some(result) = standby.read(length, &work).await
            {
                return result.map_err(|error| read_error(operation, error));
            }
            return Err(ReadError::Unavailable { operation, source: open.into() });
        }
        let mut result = self.server.read(length, &work).await;
        if let Err(error) = &result
            && self.server.retire_connections(error)
        {
            tracing::debug!(%error, operation, "retrying on another connection");
            result = self.server.read(length, &work).await;
        }
        self.record(&result);
        if let Err(error) = &result
            && is_connection_failure(error)
            && let Some(standby) = standby()
            && let Some(read) = standby.read(length, &work).await
        {
            result = read;
        }
        result.map_err(|error| read_error(operation, error))
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
        let (options, health) = (Arc::clone(self.server.unlimited_options()), self.server.health.clone());
        // Not the pool itself, so that its connections are closed with the last store.
        let closed = self.server.pool().closed().clone();
        tokio::spawn(async move {
            let responds = wait_for_response(&options);
            let Some(outage) = closed.run_until_cancelled(responds).await else { return };
            health.record_failure();
            breaker.close();
            tracing::info!(outage_ms = outage.as_millis(), "PostgreSQL responds again");
        });
    }
}

fn monitoring_config(config: &StoreConfig) -> StoreConfig {
    StoreConfig { max_connections: MONITORING_CONNECTIONS, ..config.clone() }
}
