//! The connection that all requests share.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::sync::{Notify, watch};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::circuit_breaker::CircuitBreaker;
use crate::multiplexed::Multiplexed;
use crate::{CommandError, RedisConfig, supervisor};

/// A connection to Redis that reconnects by itself, for commands on the hot path.
///
/// It holds one multiplexed connection with `TCP_NODELAY`, to a single server or to each node of a cluster, behind a
/// circuit breaker. A background task connects, reconnects and probes; requests never do. A command meets one of
/// three [states](ConnectionState):
///
/// - *Connected*: the command is sent at once. Its caller waits for the reply, at most until the deadline.
/// - *Connecting*: after the start or the loss of a connection, a command waits for the first attempt to connect, at
///   most until its deadline. So a connection that a proxy closes fails no command that is sent later.
/// - *Unavailable*: the command fails at once with [`CommandError::Unavailable`], until the background task has
///   connected and a probe has succeeded within [`RedisConfig::request_timeout`]. It tries at once, and then again
///   after 50 ms to 600 ms.
///
/// One circuit breaker serves all nodes of a cluster, and the probe asks every primary, when connecting and once a
/// second: while one of them is down and not replaced, or cut off from the others, the whole cluster counts as
/// unavailable.
///
/// Clones share the connection. It is closed when the last clone is dropped.
#[derive(Clone)]
pub struct RedisConnection {
    shared: Arc<Shared>,
    _supervisor: Option<Arc<AbortOnDropHandle<()>>>,
}

/// The state of a [`RedisConnection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first attempt to connect is in progress.
    Connecting,
    /// Commands are sent.
    Connected,
    /// Commands fail at once.
    Unavailable,
}

/// What the requests share with the background task.
pub(crate) struct Shared {
    pub(crate) request_timeout: Duration,
    pub(crate) state: watch::Sender<State>,
    /// Wakes the background task when the current connection is discarded.
    pub(crate) discarded: Notify,
}

#[derive(Clone)]
pub(crate) enum State {
    Connecting,
    Connected(Arc<Connected>),
    Unavailable,
}

/// An open connection with its own breaker: commands on an earlier connection may time out after it was replaced,
/// which says nothing about this one.
pub(crate) struct Connected {
    pub(crate) connection: Multiplexed,
    pub(crate) breaker: CircuitBreaker,
}

impl RedisConnection {
    /// Starts to connect in the background, and returns at once.
    ///
    /// # Errors
    ///
    /// The endpoint is invalid: the credentials of the nodes of a cluster differ, or a certificate does not parse.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, if there is an endpoint.
    pub fn connect(config: RedisConfig) -> Result<Self, RedisError> {
        config.install_tls_provider();
        let Some(client) = config.client()? else { return Ok(Self::disabled()) };
        let shared = Arc::new(Shared {
            request_timeout: config.request_timeout,
            state: watch::Sender::new(State::Connecting),
            discarded: Notify::new(),
        });
        let supervisor = tokio::spawn(supervisor::run(Arc::clone(&shared), client, config));
        Ok(Self { shared, _supervisor: Some(Arc::new(AbortOnDropHandle::new(supervisor))) })
    }

    /// A connection to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub fn disabled() -> Self {
        let shared = Shared {
            request_timeout: Duration::ZERO,
            state: watch::Sender::new(State::Unavailable),
            discarded: Notify::new(),
        };
        Self { shared: Arc::new(shared), _supervisor: None }
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.shared.state.borrow().public()
    }

    /// Waits until the connection is in this state.
    pub async fn wait_for_state(&self, wanted: ConnectionState) {
        let mut states = self.shared.state.subscribe();
        // Does not fail, since `self` owns the sender.
        let _ = states.wait_for(|state| state.public() == wanted).await;
    }

    /// The deadline for the commands of a request that starts now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.shared.request_timeout
    }

    /// Sends a command and waits for its reply.
    pub async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        let connected = self.shared.connected(deadline).await?;
        let reply = timeout_at(deadline, connected.connection.clone().run(command)).await;
        self.shared.record(&connected, reply)
    }

    /// Sends several commands in one round trip: in one pipeline to a server, or concurrently to the nodes of a
    /// cluster. The outer error is that of all commands.
    pub async fn run_all(
        &self,
        commands: Vec<Cmd>,
        deadline: Instant,
    ) -> Result<Vec<Result<Value, CommandError>>, CommandError> {
        let connected = self.shared.connected(deadline).await?;
        let replies = timeout_at(deadline, connected.connection.clone().run_all(commands)).await;
        let replies = self.shared.record(&connected, replies)?;
        Ok(replies.into_iter().map(|reply| self.shared.record(&connected, Ok(reply))).collect())
    }
}

impl std::fmt::Debug for RedisConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisConnection").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl State {
    const fn public(&self) -> ConnectionState {
        match self {
            Self::Connecting => ConnectionState::Connecting,
            Self::Connected(..) => ConnectionState::Connected,
            Self::Unavailable => ConnectionState::Unavailable,
        }
    }
}

impl Shared {
    /// The open connection. Waits for the first attempt to connect.
    async fn connected(&self, deadline: Instant) -> Result<Arc<Connected>, CommandError> {
        let mut state = self.state.borrow().clone();
        if matches!(state, State::Connecting) {
            let mut states = self.state.subscribe();
            let settled = states.wait_for(|state| !matches!(state, State::Connecting));
            state = match timeout_at(deadline, settled).await {
                Ok(Ok(settled)) => settled.clone(),
                Ok(Err(_)) | Err(_) => State::Unavailable,
            };
        }
        match state {
            State::Connected(connected) => Ok(connected),
            State::Connecting | State::Unavailable => Err(CommandError::Unavailable),
        }
    }

    /// Records the outcome of a command: with the circuit breaker, and by discarding the connection if it is of no
    /// further use.
    pub(crate) fn record<Reply>(
        &self,
        connected: &Arc<Connected>,
        reply: Result<Result<Reply, RedisError>, Elapsed>,
    ) -> Result<Reply, CommandError> {
        match reply.map(|reply| reply.map_err(CommandError::from)) {
            Ok(Err(error @ CommandError::Disconnected(_))) => {
                self.discard(connected, State::Connecting);
                Err(error)
            }
            Ok(reply) => {
                connected.breaker.record_success();
                reply
            }
            Err(_) => {
                if connected.breaker.record_timeout() {
                    self.discard(connected, State::Unavailable);
                }
                Err(CommandError::TimedOut)
            }
        }
    }

    /// Discards a connection, unless that has happened already, and wakes the background task.
    fn discard(&self, connected: &Arc<Connected>, next: State) {
        let discarded = self.state.send_if_modified(|state| {
            let is_current = matches!(state, State::Connected(current) if Arc::ptr_eq(current, connected));
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
