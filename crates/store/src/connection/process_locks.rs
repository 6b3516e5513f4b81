//! Advisory locks of long-running processes: one at a time may write to the index of a search node, or fill a
//! mirror.
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
use strum::IntoStaticStr;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::connection_pool::connect;
use crate::time_limit::{STATEMENT_TIMEOUT, is_no_response, with_time_limit};
use crate::{Store, StoreError};

/// Interval of pings while the connection is not in use.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// First and longest pause between two attempts to take a lock that another process holds.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";

/// The task of a process. Each role has its own lock, whose key has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProcessRole {
    /// Keeps an index in sync with the catalogue for as long as the process runs.
    Sync,
    /// Fills a new index.
    Rebuild,
    /// Writes to the live index, or swaps it.
    Write,
    /// Fills a mirror from another index.
    Mirror,
}

/// The locks of this process on what it writes. Dropping it releases them.
pub struct ProcessLocks {
    locked: String,
    connection: Arc<Mutex<PgConnection>>,
    lost: CancellationToken,
    _heartbeat: AbortOnDropHandle<()>,
}

/// The connection that held the locks was lost.
#[derive(Debug, thiserror::Error)]
#[error("lost the connection that held the locks of the process")]
struct LocksLost;

impl Store {
    /// Opens a connection for locks on what has this name, such as the URL of an index. Every process must use
    /// the same name.
    pub async fn process_locks(&self, name: &str) -> Result<ProcessLocks, StoreError> {
        let options = self.unlimited_options().clone().options([("idle_session_timeout", "0")]);
        let connecting = with_time_limit(STATEMENT_TIMEOUT, connect(&options));
        let connection = connecting.await.map_err(lock_error)?;
        let (connection, lost) = (Arc::new(Mutex::new(connection)), CancellationToken::new());
        let heartbeat = tokio::spawn(send_heartbeats(Arc::clone(&connection), lost.clone()));
        let heartbeat = AbortOnDropHandle::new(heartbeat);
        Ok(ProcessLocks { locked: name.to_owned(), connection, lost, _heartbeat: heartbeat })
    }
}

impl ProcessLocks {
    /// Tries to take the lock of a role. Returns `false` if another process holds it.
    pub async fn try_acquire(&self, role: ProcessRole) -> Result<bool, StoreError> {
        self.run(TRY_LOCK, key(&self.locked, role)).await
    }

    /// Waits for the lock of a role. A process that releases it and takes it again queues behind one that is
    /// waiting.
    ///
    /// # Errors
    /// The connection was lost, and with it all locks of the process.
    pub async fn acquire(&self, role: ProcessRole) -> Result<(), StoreError> {
        // Only one of the waiting processes polls the lock itself, and holds the queue lock. Without that, a
        // process that takes the lock again and again would rarely leave it free when another one polls.
        let queue = queue_key(&self.locked, role);
        self.poll(queue).await?;
        self.poll(key(&self.locked, role)).await?;
        self.run(UNLOCK, queue).await.map(|_| ())
    }

    /// Releases the lock of a role.
    pub async fn release(&self, role: ProcessRole) -> Result<(), StoreError> {
        self.run(UNLOCK, key(&self.locked, role)).await.map(|_| ())
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

impl fmt::Debug for ProcessLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessLocks").field("locked", &self.locked).finish_non_exhaustive()
    }
}

/// The key of a lock. If two of them had the same key by chance, their processes would only wait for each
/// other.
fn key(name: &str, role: ProcessRole) -> i64 {
    lock_key("chart-index 2026 lock of a process", name, role)
}

/// The key of the lock that a process holds while it polls the lock itself.
fn queue_key(name: &str, role: ProcessRole) -> i64 {
    lock_key("chart-index 2026 next holder of a lock of a process", name, role)
}

fn lock_key(context: &str, name: &str, role: ProcessRole) -> i64 {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(<&str>::from(role).as_bytes()).update(b"\0").update(name.as_bytes());
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
    StoreError::new("take a lock", error)
}

fn lost() -> StoreError {
    StoreError::Unavailable { operation: "take a lock", source: Box::new(LocksLost) }
}
