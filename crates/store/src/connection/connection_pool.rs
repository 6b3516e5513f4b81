//! The pool of connections to PostgreSQL.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolConfig, PoolError, QueueMode, RecycleError, RecycleResult, Timeouts,
    WeakPool,
};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::connection_health::ConnectionHealth;
use crate::connection::server_identity::{ExpectedServer, is_unexpected_server};
use crate::error::{NotConnected, is_starting_up};
use crate::time_limit::{STATEMENT_TIMEOUT, with_time_limit};

/// Idle time after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// Age at which a connection is replaced: the cache of the system catalogue in its server process only grows.
const MAX_LIFETIME: Duration = Duration::from_mins(30);
/// How often idle connections are closed.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// The first and the longest pause between attempts to connect while PostgreSQL starts. Each is twice the one
/// before.
const RECONNECT_PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(300)];
/// Attempts to reach the expected standby behind a name that leads to several, and the pause between them. One
/// of three standbys is missed by all attempts once in 650 times.
const STANDBY_ATTEMPTS: u32 = 16;
const STANDBY_PAUSE: Duration = Duration::from_millis(10);

/// A connection of the pool. It returns to the pool when it is dropped, whatever its state.
pub(crate) type Pooled = Object<Connector>;

/// A pool of connections. Dropping it closes them.
///
/// Unlike that of sqlx, it does not ping each connection that is returned, a second round trip for a lookup:
/// [`PooledConnection`](crate::connection::pooled_connection::PooledConnection) knows when a statement is
/// complete.
pub(crate) struct ConnectionPool {
    pool: Pool<Connector>,
    acquire_timeout: Duration,
    closed: CancellationToken,
}

impl ConnectionPool {
    /// A pool that connects when it is first used.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub(crate) fn new(
        options: PgConnectOptions,
        health: ConnectionHealth,
        max_connections: u32,
        acquire_timeout: Duration,
        expected: Option<Arc<ExpectedServer>>,
    ) -> Self {
        let config = PoolConfig {
            max_size: usize::try_from(max_connections).unwrap_or(usize::MAX),
            timeouts: Timeouts::default(),
            // The data of the server process that was used last is in the caches of the processor.
            queue_mode: QueueMode::Lifo,
        };
        let pool = Pool::builder(Connector { options, health, expected, failure: Mutex::default() })
            .config(config)
            .build();
        let pool = pool.unwrap_or_else(|error| unreachable!("{error}, and there are no timeouts"));
        let closed = CancellationToken::new();
        let (weak, until_closed) = (pool.weak(), closed.clone());
        tokio::spawn(async move { until_closed.run_until_cancelled(close_idle_connections(weak)).await });
        Self { pool, acquire_timeout, closed }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    ///
    /// [`sqlx::Error::PoolTimedOut`] if all are in use for too long, [`NotConnected`] if PostgreSQL cannot be
    /// reached, also because it is starting, and [`sqlx::Error::PoolClosed`].
    pub(crate) async fn acquire(&self) -> Result<Pooled, sqlx::Error> {
        match timeout(self.acquire_timeout, self.pool.get()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error))) => Err(error),
            Ok(Err(PoolError::Closed)) => Err(sqlx::Error::PoolClosed),
            Ok(Err(_)) | Err(_) => match self.connection_failure() {
                Some(failure) => Err(NotConnected(failure).into()),
                None => Err(sqlx::Error::PoolTimedOut),
            },
        }
    }

    /// Why the last attempt to connect failed. `None` after one that succeeded.
    pub(crate) fn connection_failure(&self) -> Option<String> {
        self.pool.manager().failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of open connections, and how many of them are idle.
    pub(crate) fn open_and_idle(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    /// Closes the connections that are idle now, and the others as soon as they are dropped.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        let idle = self.pool.retain(|_, _| false).removed;
        self.pool.close();
        close_all(idle).await;
    }

    /// Cancelled when the pool is closed or dropped.
    pub(crate) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("status", &self.pool.status()).finish_non_exhaustive()
    }
}

/// Opens a connection.
pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    PgConnection::connect_with(options).await.map_err(|error| {
        let error = match error {
            sqlx::Error::Io(error) => error,
            // sqlx says so of a proxy that accepts a connection, has no server for it, and closes it.
            error @ sqlx::Error::Protocol(_) => io::Error::other(error),
            error => return error,
        };
        let (host, port) = (options.get_host(), options.get_port());
        let place =
            options.get_socket().map_or_else(|| format!("{host}:{port}"), |path| path.display().to_string());
        io::Error::new(error.kind(), format!("cannot connect to {place}: {error}")).into()
    })
}

/// Opens the connections of a pool, and decides whether they are reused.
#[derive(Debug)]
pub(crate) struct Connector {
    options: PgConnectOptions,
    health: ConnectionHealth,
    expected: Option<Arc<ExpectedServer>>,
    /// Of the last attempt to connect.
    failure: Mutex<Option<String>>,
}

impl Connector {
    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let connected = connect(&self.options).await;
        let failure = connected.as_ref().err().map(ToString::to_string);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        let mut connection = connected?;
        if let Some(expected) = &self.expected {
            expected.check(&mut connection).await?;
        }
        Ok(connection)
    }
}

impl Manager for Connector {
    type Type = PgConnection;
    type Error = sqlx::Error;

    /// Connects. Retries while PostgreSQL is starting, and a few times if another server is reached.
    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        let [mut pause, longest] = RECONNECT_PAUSES;
        let mut other_servers = 0;
        loop {
            match self.connect().await {
                Err(error) if is_starting_up(&error) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                Err(error) if is_unexpected_server(&error) => {
                    other_servers += 1;
                    if other_servers == STANDBY_ATTEMPTS {
                        return Err(sqlx::Error::PoolTimedOut);
                    }
                    sleep(STANDBY_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    async fn recycle(&self, connection: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        let (age, idle) = (metrics.age(), metrics.last_used());
        if age < MAX_LIFETIME && self.health.check_reuse(connection, age, idle).await {
            return Ok(());
        }
        Err(RecycleError::message("too old, or another connection was lost"))
    }
}

/// Closes connections that have been idle for too long, for as long as the pool exists.
async fn close_idle_connections(pool: WeakPool<Connector>) {
    loop {
        sleep(IDLE_CHECK_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let idle = pool.retain(|_, metrics| metrics.last_used() < IDLE_TIMEOUT).removed;
        drop(pool);
        close_all(idle).await;
    }
}

async fn close_all(connections: Vec<PgConnection>) {
    for connection in connections {
        // After an error it is closed, too.
        let _ = with_time_limit(STATEMENT_TIMEOUT, connection.close()).await;
    }
}
