//! A pool connection for one attempt with a deadline.

use std::ops::{Deref, DerefMut};

use deadpool::managed::Object;
use sqlx::{Executor, PgConnection};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant, timeout_at};

use crate::connection::connection_health::{ConnectionHealth, ping};
use crate::connection::connection_pool::Pooled;

/// Begins a transaction in which all statements read the same snapshot.
pub(crate) const BEGIN_SNAPSHOT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// Maximum time for which an abandoned statement may run, even if the deadline is later.
const MAX_RETURN_TIME: Duration = Duration::from_mins(1);

/// A pool connection for one attempt, which must end at a deadline.
///
/// [`release`](Self::release) returns it to the pool. Dropped before the deadline, it returns when its statement
/// and its transaction have ended, up to the deadline. Dropped after it, it is closed: a statement on it may
/// never get a response.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    /// Present until it is released or dropped.
    connection: Option<Pooled>,
    deadline: Instant,
    health: ConnectionHealth,
}

impl PooledConnection {
    pub(crate) const fn new(connection: Pooled, deadline: Instant, health: ConnectionHealth) -> Self {
        Self { connection: Some(connection), deadline, health }
    }

    /// When the attempt must end.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns it to the pool at once, which saves a round trip. Every statement must have been read to its
    /// end, and no transaction may be open.
    pub(crate) fn release(mut self) {
        drop(self.connection.take());
    }

    /// Pings the connection. Returns whether it responds; if not, it must not be used and will be closed.
    pub(crate) async fn check(&mut self) -> bool {
        let responds = ping(self).await;
        if !responds {
            self.deadline = Instant::now();
        }
        responds
    }
}

impl Deref for PooledConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        let Some(connection) = &self.connection else { unreachable!("it was neither released nor dropped") };
        connection
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        let Some(connection) = &mut self.connection else {
            unreachable!("it was neither released nor dropped")
        };
        connection
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let runtime = Handle::try_current();
        let (Ok(runtime), false) = (runtime, Instant::now() >= self.deadline) else {
            return close(connection);
        };
        let deadline = self.deadline.min(Instant::now() + MAX_RETURN_TIME);
        let health = self.health.clone();
        runtime.spawn(async move {
            // sqlx ends a transaction that was dropped, but not one whose `BEGIN` was sent and not awaited.
            match timeout_at(deadline, connection.execute("ROLLBACK")).await {
                Ok(Ok(_)) => drop(connection),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "closing a connection that was lost");
                    close(connection);
                }
                Err(_) => {
                    health.record_failure();
                    close(connection);
                }
            }
        });
    }
}

/// Closes the socket, so that the pool may open another connection.
fn close(connection: Pooled) {
    drop(Object::take(connection));
}
