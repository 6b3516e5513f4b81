//! Who may write to a search node: one process at a time, kept by advisory locks of PostgreSQL.
//!
//! The locks of a process belong to one connection and end with it, so a process that dies leaves none behind. A
//! process that lives and loses the connection has lost them as well: it may no longer write.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::{Store, StoreError};

/// How often the connection is tried while nothing else uses it.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long PostgreSQL may take to answer on it.
const PATIENCE: Duration = Duration::from_secs(5);

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
            // One that gave up waiting for a lock must not be given it.
            ("client_connection_check_interval", "1s"),
        ]);
        let connection = self.connect(&options).await.map_err(lock_error)?;
        let (connection, lost) = (Arc::new(Mutex::new(connection)), CancellationToken::new());
        let heartbeat = tokio::spawn(watch(Arc::clone(&connection), lost.clone()));
        let heartbeat = AbortOnDropHandle::new(heartbeat);
        Ok(NodeLocks { node: node.to_owned(), connection, lost, _heartbeat: heartbeat })
    }
}

impl NodeLocks {
    /// Takes the lock of a role, unless another process has it: then `false`.
    pub async fn try_acquire(&self, role: NodeRole) -> Result<bool, StoreError> {
        self.ask("SELECT pg_try_advisory_lock($1)", role).await
    }

    /// Takes the lock of a role, after all who asked for it before.
    pub async fn acquire(&self, role: NodeRole) -> Result<(), StoreError> {
        self.ask("SELECT pg_advisory_lock($1) IS NOT NULL", role).await.map(|_| ())
    }

    /// Gives the lock of a role back.
    pub async fn release(&self, role: NodeRole) -> Result<(), StoreError> {
        self.ask("SELECT pg_advisory_unlock($1)", role).await.map(|_| ())
    }

    /// Makes sure, by asking PostgreSQL, that the locks are still held: right before a write.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.connection.lock().await;
        match timeout(PATIENCE, connection.ping()).await {
            Ok(Ok(())) if !self.lost.is_cancelled() => Ok(()),
            Ok(Err(error)) => Err(lock_error(error)),
            _ => Err(lost()),
        }
    }

    /// Does something for which the locks are needed, and ends it where it stands when they are lost.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Err(lost()),
            result = work => Ok(result),
        }
    }

    async fn ask(&self, statement: &'static str, role: NodeRole) -> Result<bool, StoreError> {
        let mut connection = self.connection.lock().await;
        let asked = sqlx::query_scalar(statement).bind(key(&self.node, role));
        asked.fetch_one(&mut *connection).await.map_err(lock_error)
    }
}

impl fmt::Debug for NodeLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLocks").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The number of the lock. That two names share one by chance would only make one process wait for another.
fn key(node: &str, role: NodeRole) -> i64 {
    let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 lock of a search node");
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
        if !matches!(timeout(PATIENCE, connection.ping()).await, Ok(Ok(()))) {
            lost.cancel();
            return;
        }
    }
}

fn lock_error(error: sqlx::Error) -> StoreError {
    StoreError::new("lock the node", error)
}

fn lost() -> StoreError {
    StoreError::Unavailable { operation: "lock the node", source: Box::new(LocksLost) }
}
