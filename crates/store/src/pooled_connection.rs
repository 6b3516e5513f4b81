//! A pool connection for one attempt with a deadline.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant, timeout_at};

use crate::connection_health::{ConnectionHealth, responds};

/// Longest time the pool waits for an abandoned statement to end, if the deadline is later than that.
const MAX_RETURN_TIME: Duration = Duration::from_mins(1);

/// A pool connection for one attempt, which must end at a deadline.
///
/// Dropped before the deadline, the connection returns to the pool, which first waits for its statement to end, up to
/// the deadline. Dropped after it, the connection is closed: a statement on it may never get a response.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    connection: PoolConnection<Postgres>,
    deadline: Instant,
    health: ConnectionHealth,
}

impl PooledConnection {
    pub(crate) const fn new(
        connection: PoolConnection<Postgres>,
        deadline: Instant,
        health: ConnectionHealth,
    ) -> Self {
        Self { connection, deadline, health }
    }

    /// When the attempt must end.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the connection responds to a ping. If not, it must not be used and will be closed.
    pub(crate) async fn responds(&mut self) -> bool {
        let responds = responds(&mut self.connection).await;
        if !responds {
            self.deadline = Instant::now();
        }
        responds
    }
}

impl Deref for PooledConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // Boxed: a task moves its future several times, and this one takes kilobytes.
        let returning = Box::pin(self.connection.return_to_pool());
        if Instant::now() >= self.deadline {
            // Dropping this future without polling it closes the socket and frees the slot in the pool.
            drop(returning);
            return;
        }
        let deadline = self.deadline.min(Instant::now() + MAX_RETURN_TIME);
        let health = self.health.clone();
        // Without a runtime the connection is closed as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if timeout_at(deadline, returning).await.is_err() {
                    health.record_failure();
                }
            });
        }
    }
}
