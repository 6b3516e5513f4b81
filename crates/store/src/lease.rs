//! A connection of the pool for one attempt, and how silent connections are kept out of the pool.
//!
//! A connection is silent when nothing arrives any more and nothing closes it: a firewall or NAT gateway dropped its
//! state, or the server vanished without a FIN or RST. sqlx has no TCP keepalive, so only a timeout finds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::pool::{PoolConnection, PoolConnectionMetadata};
use sqlx::{Connection, PgConnection, Postgres};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a connection may be idle before it is pinged ahead of its use. Pinging it every time would double the
/// round trips of a lookup.
const TRUSTED_IDLE: Duration = Duration::from_secs(5);
/// How long the response to a ping may take.
const PING_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the pool waits for the end of an abandoned statement, where the deadline is later than that.
const RETURN_TIMEOUT: Duration = Duration::from_mins(1);

/// A connection of the pool for one attempt, which has to be over at a deadline.
///
/// Dropped before the deadline, the connection goes back to the pool, which waits for the end of its statement; the
/// deadline bounds that. Dropped after it, the connection is closed: whatever was sent over it may never be answered.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: PoolConnection<Postgres>,
    deadline: Instant,
    suspicion: Suspicion,
}

impl Lease {
    pub(crate) const fn new(
        connection: PoolConnection<Postgres>,
        deadline: Instant,
        suspicion: Suspicion,
    ) -> Self {
        Self { connection, deadline, suspicion }
    }

    /// The connection.
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// When the attempt has to be over.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the connection responds to a ping. One that does not must not be used, and is closed.
    pub(crate) async fn responds(&mut self) -> bool {
        let responds = responds(&mut self.connection).await;
        if !responds {
            self.deadline = Instant::now();
        }
        responds
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let returning = self.connection.return_to_pool();
        if Instant::now() >= self.deadline {
            // Not polled, this future closes the socket and makes room for a new connection.
            drop(returning);
            return;
        }
        let deadline = self.deadline.min(Instant::now() + RETURN_TIMEOUT);
        let suspicion = self.suspicion.clone();
        // Without a runtime the connection is closed as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if timeout_at(deadline, returning).await.is_err() {
                    suspicion.raise();
                }
            });
        }
    }
}

async fn responds(connection: &mut PgConnection) -> bool {
    matches!(timeout(PING_TIMEOUT, connection.ping()).await, Ok(Ok(())))
}

/// When a connection was last found lost or silent. Those that were idle at that time are closed instead of used:
/// what took one of them has usually taken all, and a new one costs less than a timeout. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Suspicion {
    start: std::time::Instant,
    raised_ms: Arc<AtomicU64>,
}

impl Default for Suspicion {
    fn default() -> Self {
        Self { start: std::time::Instant::now(), raised_ms: Arc::default() }
    }
}

impl Suspicion {
    /// A connection is lost or silent.
    pub(crate) fn raise(&self) {
        self.raised_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
    }

    /// Whether an idle connection of the pool may be used. Takes no longer than [`PING_TIMEOUT`].
    pub(crate) async fn permits(
        &self,
        connection: &mut PgConnection,
        metadata: PoolConnectionMetadata,
    ) -> bool {
        if self.covers(metadata.idle_for) {
            return false;
        }
        if metadata.idle_for < TRUSTED_IDLE || responds(connection).await {
            return true;
        }
        self.raise();
        false
    }

    fn covers(&self, idle_for: Duration) -> bool {
        let idle_ms = u64::try_from(idle_for.as_millis()).unwrap_or(u64::MAX);
        self.now_ms().saturating_sub(idle_ms) <= self.raised_ms.load(Ordering::Relaxed)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
