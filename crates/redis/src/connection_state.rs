//! The state of a connection, which requests share with the background task that connects.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::CommandError;
use crate::circuit_breaker::CircuitBreaker;

/// The state of a [`RedisConnection`](crate::RedisConnection).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first attempt to connect since the start or the loss of a connection is in progress. In a cluster:
    /// some of the primaries are connected.
    Connecting,
    /// Commands are sent. In a cluster: every primary is connected.
    Connected,
    /// Commands fail at once. In a cluster: no primary is connected or connecting.
    Unavailable,
}

/// What the requests share with the background task.
pub(crate) struct SharedConnection {
    pub(crate) request_timeout: Duration,
    pub(crate) state: watch::Sender<CurrentConnection>,
}

#[derive(Clone)]
pub(crate) enum CurrentConnection {
    Connecting,
    Connected(Arc<Connected>),
    Unavailable,
}

/// An open connection with its own breaker: commands on an earlier connection may time out after it was
/// replaced, which says nothing about this one.
pub(crate) struct Connected {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) breaker: CircuitBreaker,
}

impl CurrentConnection {
    pub(crate) const fn public(&self) -> ConnectionState {
        match self {
            Self::Connecting => ConnectionState::Connecting,
            Self::Connected(..) => ConnectionState::Connected,
            Self::Unavailable => ConnectionState::Unavailable,
        }
    }
}

impl SharedConnection {
    /// The open connection. Waits for the end of the first attempt to connect, at most until the deadline.
    pub(crate) async fn wait_for_connection(
        &self,
        deadline: Instant,
    ) -> Result<Arc<Connected>, CommandError> {
        let mut state = self.state.borrow().clone();
        if matches!(state, CurrentConnection::Connecting) {
            let mut states = self.state.subscribe();
            let settled = states.wait_for(|state| !matches!(state, CurrentConnection::Connecting));
            // Boxed, so that the future of a command that need not wait is no larger.
            state = match Box::pin(timeout_at(deadline, settled)).await {
                Ok(Ok(settled)) => settled.clone(),
                Ok(Err(_)) | Err(_) => CurrentConnection::Unavailable,
            };
        }
        match state {
            CurrentConnection::Connected(connected) => Ok(connected),
            CurrentConnection::Connecting | CurrentConnection::Unavailable => Err(CommandError::Unavailable),
        }
    }

    /// Records the outcome of a command: with the circuit breaker, and by discarding the connection if it is of
    /// no further use.
    pub(crate) fn record<Reply>(
        &self,
        connected: &Arc<Connected>,
        reply: Result<Result<Reply, RedisError>, Elapsed>,
    ) -> Result<Reply, CommandError> {
        let Ok(reply) = reply else {
            if connected.breaker.record_timeout() {
                self.discard(connected, CurrentConnection::Unavailable);
            }
            return Err(CommandError::TimedOut);
        };
        let reply = self.check(connected, reply);
        if !matches!(reply, Err(CommandError::Disconnected(_))) {
            connected.breaker.record_success();
        }
        reply
    }

    /// Discards the connection if the error of a reply shows that it is of no further use.
    pub(crate) fn check<Reply>(
        &self,
        connected: &Arc<Connected>,
        reply: Result<Reply, RedisError>,
    ) -> Result<Reply, CommandError> {
        let reply = reply.map_err(CommandError::from);
        if matches!(reply, Err(CommandError::Disconnected(_))) {
            self.discard(connected, CurrentConnection::Connecting);
        }
        reply
    }

    /// Discards a connection, unless that has happened already. The background task waits for that.
    fn discard(&self, connected: &Arc<Connected>, next: CurrentConnection) {
        self.state.send_if_modified(|state| {
            let is_current =
                matches!(state, CurrentConnection::Connected(current) if Arc::ptr_eq(current, connected));
            if is_current {
                *state = next;
            }
            is_current
        });
    }

    /// Waits until the open connection is discarded.
    pub(crate) async fn discarded(&self) {
        let is_discarded = |state: &CurrentConnection| !matches!(state, CurrentConnection::Connected(_));
        let _ = self.state.subscribe().wait_for(is_discarded).await;
    }
}
