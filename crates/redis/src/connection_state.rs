//! The state of a connection, which requests share with the background task that connects.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;
use tokio::sync::{Notify, watch};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::CommandError;
use crate::circuit_breaker::CircuitBreaker;
use crate::multiplexed::Multiplexed;

/// The state of a [`RedisConnection`](crate::RedisConnection).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first attempt to connect since the start or the loss of a connection is in progress.
    Connecting,
    /// Commands are sent.
    Connected,
    /// Commands fail at once.
    Unavailable,
}

/// What the requests share with the background task.
pub(crate) struct SharedConnection {
    pub(crate) request_timeout: Duration,
    pub(crate) state: watch::Sender<CurrentConnection>,
    /// Wakes the background task when the current connection is discarded.
    pub(crate) discarded: Notify,
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
    pub(crate) connection: Multiplexed,
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
            state = match timeout_at(deadline, settled).await {
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
        match reply.map(|reply| reply.map_err(CommandError::from)) {
            Ok(Err(error @ CommandError::Disconnected(_))) => {
                self.discard(connected, CurrentConnection::Connecting);
                Err(error)
            }
            Ok(reply) => {
                connected.breaker.record_success();
                reply
            }
            Err(_) => {
                if connected.breaker.record_timeout() {
                    self.discard(connected, CurrentConnection::Unavailable);
                }
                Err(CommandError::TimedOut)
            }
        }
    }

    /// Discards a connection, unless that has happened already, and wakes the background task.
    fn discard(&self, connected: &Arc<Connected>, next: CurrentConnection) {
        let discarded = self.state.send_if_modified(|state| {
            let is_current =
                matches!(state, CurrentConnection::Connected(current) if Arc::ptr_eq(current, connected));
            if is_current {
                *state = next;
            }
            is_current
        });
        if discarded {
            self.discarded.notify_one();
        }
    }
}
