//! Advisory locks for the indexes of search nodes: one process at a time may write to an index.
//!
//! The locks of a process belong to one connection and end with it, so a process that crashes leaves none
//! behind. A process that loses the connection has lost its locks and must stop writing.
//!
//! A lock that another process holds is polled. A statement that waits for it would keep a snapshot open, which
//! holds back vacuum, and a half-open connection would not be detected. Every statement here has the limit
//! [`STATEMENT_TIMEOUT`]; a connection that exceeds it counts as lost.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::time_limit::{STATEMENT_TIMEOUT, is_no_response, with_time_limit};
use crate::{Store, StoreError};

/// Interval of pings while the connection is not in use.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// First and longest pause between two attempts to take a lock that another process holds.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";

/// The task of a process that writes to an index. Each role has its own lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexRole {
    /// Keeps the index in sync with the catalogue for as long as the process runs.
    Sync,
    /// Fills a new index.
    Rebuild,
    /// Writes to the live index, or swaps it.
    Write,
}

impl IndexRole {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Rebuild => "rebuild",
            Self::Write => "write",
        }
    }
}

/// The locks of this process on one index. Dropping it releases them.
pub struct IndexLocks {
    index: String,
    connection: Arc<Mutex<PgConnection>>,
    lost: CancellationToken,
    _heartbeat: AbortOnDropHandle<()>,
}

/// The connection that held the locks was lost.
#[derive(Debug, thiserror::Error)]
#[error("lost the connection that held the locks of the index")]
struct LocksLost;

impl Store {
    /// Opens a connection for locks on the index with this URL. Every process must use the same URL.
    pub async fn index_locks(&self, index: &str) -> Result<IndexLocks, StoreError> {
        let options = self.unlimited_options().clone().options([
            ("idle_session_timeout", "0"),
            // The locks of a machine that vanished end after about half a minute instead of two hours, the
            // default.
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "4"),
        ]);
        let connecting = with_time_limit(STATEMENT_TIMEOUT, PgConnection::connect_with(&options));
        let connection = connecting.await.map_err(lock_error)?;
        let (connection, lost) = (Arc::new(Mutex::new(connection)), CancellationToken::new());
        let heartbeat = tokio::spawn(send_heartbeats(Arc::clone(&connection), lost.clone()));
        let heartbeat = AbortOnDropHandle::new(heartbeat);
        Ok(IndexLocks { index: index.to_owned(), connection, lost, _heartbeat: heartbeat })
    }
}

impl IndexLocks {
    /// Tries to take the lock of a role. Returns `false` if another process holds it.
    pub async fn try_acquire(&self, role: IndexRole) -> Result<bool, StoreError> {
        self.run(TRY_LOCK, key(&self.index, role)).await
    }

    /// Waits for the lock of a role. A process that releases it and takes it again queues behind one that is
    /// waiting.
    ///
    /// # Errors
    /// The connection was lost, and with it all locks of the process.
    pub async fn acquire(&self, role: IndexRole) -> Result<(), StoreError> {
        // Only one of the waiting processes polls the lock itself, and holds the queue lock. Without that, a
        // process that takes the lock again and again would rarely leave it free when another one polls.
        let queue = queue_key(&self.index, role);
        self.poll(queue).await?;
        self.poll(key(&self.index, role)).await?;
        self.run(UNLOCK, queue).await.map(|_| ())
    }

    /// Releases the lock of a role.
    pub async fn release(&self, role: IndexRole) -> Result<(), StoreError> {
        self.run(UNLOCK, key(&self.index, role)).await.map(|_| ())
    }

    /// Checks with PostgreSQL that the locks are still held. Call it right before a write.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.connection.lock().await;
        self.with_time_limit(connection.ping()).await
    }

    /// Runs work that needs the locks, and cancels it when they are lost.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Err(lost()),
            result = work => Ok(result),
        }
    }

    /// Polls a lock until this process holds it.
    async fn poll(&self, key: i64) -> Result<(), StoreError> {
        let (mut pause, longest) = POLL_INTERVAL;
        while !self.run(TRY_LOCK, key).await? {
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
        Ok(())
    }

    async fn run(&self, statement: &'static str, key: i64) -> Result<bool, StoreError> {
        let mut connection = self.connection.lock().await;
        self.with_time_limit(sqlx::query_scalar(statement).bind(key).fetch_one(&mut *connection)).await
    }

    /// Runs a statement on the connection. After a timeout the connection is not used again: the response to
    /// this statement could be mistaken for that to the next one.
    async fn with_time_limit<T>(
        &self,
        statement: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        if self.lost.is_cancelled() {
            return Err(lost());
        }
        let result = with_time_limit(STATEMENT_TIMEOUT, statement).await;
        if result.as_ref().is_err_and(is_no_response) {
            self.lost.cancel();
        }
        result.map_err(lock_error)
    }
}

impl fmt::Debug for IndexLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexLocks").field("index", &self.index).finish_non_exhaustive()
    }
}

/// The key of a lock. If two indexes had the same key by chance, their processes would only wait for each
/// other.
fn key(index: &str, role: IndexRole) -> i64 {
    lock_key("chart-index 2026 lock of a search index", index, role)
}

/// The key of the lock that a process holds while it polls the lock itself.
fn queue_key(index: &str, role: IndexRole) -> i64 {
    lock_key("chart-index 2026 next holder of a lock of a search index", index, role)
}

fn lock_key(context: &str, index: &str, role: IndexRole) -> i64 {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(role.as_str().as_bytes()).update(b"\0").update(index.as_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    i64::from_le_bytes(bytes)
}

/// Pings the connection while it is not in use. Its users detect a loss by themselves.
async fn send_heartbeats(connection: Arc<Mutex<PgConnection>>, lost: CancellationToken) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Ok(mut connection) = connection.try_lock() else { continue };
        if with_time_limit(STATEMENT_TIMEOUT, connection.ping()).await.is_err() {
            lost.cancel();
            return;
        }
    }
}

fn lock_error(error: sqlx::Error) -> StoreError {
    StoreError::new("lock the index", error)
}

fn lost() -> StoreError {
    StoreError::Unavailable { operation: "lock the index", source: Box::new(LocksLost) }
}
