//! The connections, and how a lost one is noticed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;

use crate::StoreConfig;
use crate::error::{is_connection_lost, read_error};

/// How long a connection may be idle before it is tried again ahead of its use. Trying every time would double
/// the round trips of a lookup.
const TRUSTED_IDLE: Duration = Duration::from_secs(5);

/// How long after the end of its statement a connection may take to say so.
const ANSWER_SLACK: Duration = Duration::from_secs(1);
/// How long an abandoned statement may run where the configuration sets no limit.
const UNLIMITED_PATIENCE: Duration = Duration::from_mins(1);

/// The catalogue in PostgreSQL. Cheap to clone: every clone shares the connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    doubt: Doubt,
    /// Without the time limits of serving, for migrations.
    unlimited: Arc<PgConnectOptions>,
    patience: Duration,
}

impl Store {
    /// A store that connects when it is first used, so it can be made while PostgreSQL is away. Needs a Tokio
    /// runtime.
    #[must_use]
    pub fn new(config: &StoreConfig) -> Self {
        let unlimited = config.url.options().application_name("chart-index");
        let limit = format!("{}ms", config.statement_timeout.as_millis());
        let options = unlimited.clone().options([("statement_timeout", limit)]);
        let doubt = Doubt::default();
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .acquire_timeout(config.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire({
                let doubt = doubt.clone();
                move |connection, meta| {
                    let trusted = meta.idle_for < TRUSTED_IDLE && !doubt.covers(meta.idle_for);
                    Box::pin(async move {
                        if !trusted {
                            connection.ping().await?;
                        }
                        Ok(true)
                    })
                }
            })
            .connect_lazy_with(options);
        let patience = match config.statement_timeout {
            Duration::ZERO => UNLIMITED_PATIENCE,
            limit => limit + ANSWER_SLACK,
        };
        Self { pool, doubt, unlimited: Arc::new(unlimited), patience }
    }

    /// Closes every connection; calls that come later are [`ReadError::Unavailable`].
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) fn unlimited_options(&self) -> &PgConnectOptions {
        &self.unlimited
    }

    /// A connection for a read.
    pub(crate) async fn lease(&self) -> Result<Lease, sqlx::Error> {
        let connection = self.pool.acquire().await?;
        Ok(Lease { connection, patience: self.patience })
    }

    /// Runs a read, once more if its connection was lost: after a restart of the server every connection of the
    /// pool is dead, and a read changes nothing, so it can simply be asked again.
    pub(crate) async fn read<T, F, R>(&self, operation: &'static str, read: F) -> Result<T, ReadError>
    where
        F: Fn() -> R,
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let result = match read().await {
            Err(error) if is_connection_lost(&error) => {
                tracing::debug!(%error, operation, "connection lost, asking again");
                self.doubt.raise();
                read().await
            }
            result => result,
        };
        result.map_err(|error| read_error(operation, error))
    }
}

/// A connection of the pool that goes back in bounded time.
///
/// The pool waits until PostgreSQL has answered what an abandoned read (a request past its deadline) asked, and
/// it waits without end: a network that drops everything would take the connections away one by one. So it gets
/// as long as the statement may take; after that the connection is closed.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: PoolConnection<Postgres>,
    patience: Duration,
}

impl Lease {
    /// The connection.
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to wait; the drop of the connection then does what it can.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(tokio::time::timeout(self.patience, self.connection.return_to_pool()));
        }
    }
}

/// When a connection was last found dead: those that were idle then are tried before their next use.
#[derive(Debug, Clone)]
struct Doubt {
    start: Instant,
    raised_ms: Arc<AtomicU64>,
}

impl Default for Doubt {
    fn default() -> Self {
        Self { start: Instant::now(), raised_ms: Arc::default() }
    }
}

impl Doubt {
    fn raise(&self) {
        self.raised_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
    }

    fn covers(&self, idle_for: Duration) -> bool {
        let idle_ms = u64::try_from(idle_for.as_millis()).unwrap_or(u64::MAX);
        self.now_ms().saturating_sub(idle_ms) <= self.raised_ms.load(Ordering::Relaxed)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
