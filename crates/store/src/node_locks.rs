//! Who may write to a search node: one process at a time, kept by advisory locks of PostgreSQL.
//!
//! The locks of a process belong to one connection and end with it, so a process that dies leaves none behind. A
//! process that lives and loses the connection has lost them as well: it may no longer write.
//!
//! A lock that another process holds is polled. A statement that waits for it on the server would keep a snapshot open
//! all the while, which holds up vacuum, and a connection that goes silent meanwhile would not be noticed. Every
//! statement here ends within [`STATEMENT_TIMEOUT`]; a connection that exceeds it counts as lost.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::{Store, StoreError};

/// How often the connection is tried while nothing else uses it.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a statement on it, or the attempt to connect, may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval between two attempts to take a lock that another process holds, at first and at most.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";

/// What a process does with a node. Different roles do not exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeRole {
    /// Follows the catalogue, for as long as the process runs.
    Sync,
    /// Fills a new index.
    Rebuild,
    /// Writes to the live index, or puts another in its place.
    Write,
}

impl NodeRole {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Rebuild => "rebuild",
            Self::Write => "write",
        }
    }
}

/// The locks that this process has on one node. Dropped, they are all free again.
pub struct NodeLocks {
    node: String,
    connection: Arc<Mutex<PgConnection>>,
    lost: CancellationToken,
    _heartbeat: AbortOnDropHandle<()>,
}

/// The connection that held the locks is gone.
#[derive(Debug, thiserror::Error)]
#[error("the connection that held the locks of the node is lost")]
struct LocksLost;

impl Store {
    /// Connects to take locks on the node with that name. Every process has to give it the same one.
    pub async fn node_locks(&self, node: &str) -> Result<NodeLocks, StoreError> {
        let options = self.unlimited_options().clone().options([
            ("idle_session_timeout", "0"),
            // A machine that vanished keeps its locks for about half a minute, not for the two hours of the default.
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "4"),
        ]);
        let connecting = timeout(STATEMENT_TIMEOUT, PgConnection::connect_with(&options)).await;
        let connection = connecting.map_err(timed_out)?.map_err(lock_error)?;
        let (connection, lost) = (Arc::new(Mutex::new(connection)), CancellationToken::new());
        let heartbeat = tokio::spawn(watch(Arc::clone(&connection), lost.clone()));
        let heartbeat = AbortOnDropHandle::new(heartbeat);
        Ok(NodeLocks { node: node.to_owned(), connection, lost, _heartbeat: heartbeat })
    }
}

impl NodeLocks {
    /// Takes the lock of a role, unless another process has it: then `false`.
    pub async fn try_acquire(&self, role: NodeRole) -> Result<bool, StoreError> {
        self.ask(TRY_LOCK, key(&self.node, role)).await
    }

    /// Takes the lock of a role as soon as no other process holds it. Whoever holds it and asks again comes after a
    /// process that is already waiting.
    ///
    /// # Errors
    /// The connection is lost, and all locks of the process with it.
    pub async fn acquire(&self, role: NodeRole) -> Result<(), StoreError> {
        // Only one of those that wait polls the lock itself. Without that, a process that takes it again and again
        // would rarely leave it free when another one looks.
        let turn = turn_key(&self.node, role);
        self.poll(turn).await?;
        self.poll(key(&self.node, role)).await?;
        self.ask(UNLOCK, turn).await.map(|_| ())
    }

    /// Gives the lock of a role back.
    pub async fn release(&self, role: NodeRole) -> Result<(), StoreError> {
        self.ask(UNLOCK, key(&self.node, role)).await.map(|_| ())
    }

    /// Makes sure, by asking PostgreSQL, that the locks are still held: right before a write.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.connection.lock().await;
        self.bounded(connection.ping()).await
    }

    /// Does something for which the locks are needed, and ends it where it stands when they are lost.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Err(lost()),
            result = work => Ok(result),
        }
    }

    /// Tries to take a lock until no other process holds it.
    async fn poll(&self, key: i64) -> Result<(), StoreError> {
        let (mut pause, longest) = POLL_INTERVAL;
        while !self.ask(TRY_LOCK, key).await? {
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
        Ok(())
    }

    async fn ask(&self, statement: &'static str, key: i64) -> Result<bool, StoreError> {
        let mut connection = self.connection.lock().await;
        self.bounded(sqlx::query_scalar(statement).bind(key).fetch_one(&mut *connection)).await
    }

    /// Runs something on the connection. After a timeout the connection is not used again: the response to the old
    /// statement could be taken for that to the next one.
    async fn bounded<T>(
        &self,
        statement: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        if self.lost.is_cancelled() {
            return Err(lost());
        }
        let result = timeout(STATEMENT_TIMEOUT, statement).await;
        let result = result.inspect_err(|_| self.lost.cancel()).map_err(timed_out)?;
        result.map_err(lock_error)
    }
}

impl fmt::Debug for NodeLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLocks").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The number of the lock. That two names share one by chance would only make one process wait for another.
fn key(node: &str, role: NodeRole) -> i64 {
    number("chart-index 2026 lock of a search node", node, role)
}

/// The number of the lock that is held while the lock itself is waited for.
fn turn_key(node: &str, role: NodeRole) -> i64 {
    number("chart-index 2026 next holder of a lock of a search node", node, role)
}

fn number(context: &str, node: &str, role: NodeRole) -> i64 {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(role.as_str().as_bytes()).update(b"\0").update(node.as_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    i64::from_le_bytes(bytes)
}

/// Tries the connection now and then. While somebody else uses it, they find out themselves.
async fn watch(connection: Arc<Mutex<PgConnection>>, lost: CancellationToken) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Ok(mut connection) = connection.try_lock() else { continue };
        if !matches!(timeout(STATEMENT_TIMEOUT, connection.ping()).await, Ok(Ok(()))) {
            lost.cancel();
            return;
        }
    }
}

fn lock_error(error: sqlx::Error) -> StoreError {
    StoreError::new("lock the node", error)
}

fn timed_out(_: Elapsed) -> StoreError {
    lock_error(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

fn lost() -> StoreError {
    StoreError::Unavailable { operation: "lock the node", source: Box::new(LocksLost) }
}
