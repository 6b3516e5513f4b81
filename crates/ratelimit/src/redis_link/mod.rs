//! The way to Redis that the hot path takes: never waits long, and never when waiting is pointless.
//!
//! [`RedisLink`] holds one multiplexed connection with `TCP_NODELAY`, to a single server or to a cluster, and a
//! circuit breaker in front of it. A task in the background connects, connects again, and probes; a request never
//! does. So a request meets one of three states:
//!
//! - *up*: its commands go out at once; it waits for the answer, at most [`RedisLinkConfig::request_timeout`];
//! - *connecting*: for at most that time after the start, or after a connection was lost, a request waits for the
//!   first attempt; so a connection that a proxy closes costs no decision;
//! - *away*: [`LinkError::Away`], without any waiting, until the background task has connected and a probe was
//!   answered within the time of a request. It tries at once, and then after 50 ms up to 500 ms.
//!
//! In a cluster, one breaker serves all nodes, and the probe asks every primary, at the start and then once a second:
//! while one is dead and not yet replaced, or cut off from the others, all of it counts as away.

mod arguments;
mod breaker;
mod config;
mod connection;
mod pool;
mod supervisor;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

pub use self::arguments::{RedisArguments, RedisUrlParser};
use self::breaker::Breaker;
pub use self::config::{MalformedRedisUrl, RedisEndpoint, RedisLinkConfig, RedisUrl};
use self::connection::{Connection, Fault, fault};
pub use self::pool::{RedisPool, Replication, Written};

/// A shared way to Redis, with its circuit breaker. Clones share both; when the last one is dropped, the
/// connection is closed.
#[derive(Clone)]
pub struct RedisLink {
    shared: Arc<Shared>,
    _supervisor: Option<Arc<AbortOnDropHandle<()>>>,
}

/// Why Redis gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The breaker is open, or there is no Redis at all. Nothing was sent, and nobody waited.
    #[error("redis is away")]
    Away,
    /// No answer within the time of a request. The command may still take effect.
    #[error("redis did not answer in time")]
    TimedOut,
    /// The connection was lost. The command may have taken effect.
    #[error("the connection to redis is lost")]
    Lost(#[source] RedisError),
    /// Redis answered with an error.
    #[error("redis answered with an error")]
    Answer(#[source] RedisError),
}

/// The state of the link, for readiness and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// The first attempt to connect is under way.
    Connecting,
    /// Commands are sent.
    Up,
    /// Commands are answered with [`LinkError::Away`].
    Away,
}

/// What the requests and the background task share.
struct Shared {
    request_timeout: Duration,
    state: watch::Sender<State>,
    /// Wakes the background task when the present connection is given up.
    given_up: Notify,
}

#[derive(Clone)]
enum State {
    Connecting,
    Up(Arc<Open>),
    Away,
}

/// An open connection. Its breaker counts its own calls only: those of an earlier connection may time out after it was
/// replaced, and say nothing of this one.
struct Open {
    connection: Connection,
    breaker: Breaker,
}

impl RedisLink {
    /// Begins to connect in the background, and returns at once.
    ///
    /// # Errors
    ///
    /// Where the endpoint cannot be used at all: credentials that differ between the nodes of a cluster, a
    /// certificate that does not parse.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, if there is an endpoint.
    pub fn connect(config: RedisLinkConfig) -> Result<Self, RedisError> {
        config.prepare_tls();
        let opener = config.opener()?;
        let initial = if opener.is_some() { State::Connecting } else { State::Away };
        let shared = Arc::new(Shared {
            request_timeout: config.request_timeout,
            state: watch::Sender::new(initial),
            given_up: Notify::new(),
        });
        let supervisor = opener.map(|opener| {
            let task = tokio::spawn(supervisor::supervise(Arc::clone(&shared), opener, config));
            Arc::new(AbortOnDropHandle::new(task))
        });
        Ok(Self { shared, _supervisor: supervisor })
    }

    /// A link to no Redis.
    #[must_use]
    pub fn none() -> Self {
        let shared = Shared {
            request_timeout: Duration::ZERO,
            state: watch::Sender::new(State::Away),
            given_up: Notify::new(),
        };
        Self { shared: Arc::new(shared), _supervisor: None }
    }

    /// Whether commands are sent now.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.shared.state.borrow().seen()
    }

    /// Waits until the link is in this state.
    pub async fn reached(&self, wanted: LinkState) {
        let mut states = self.shared.state.subscribe();
        // Never fails: this link itself keeps the sender.
        let _ = states.wait_for(|state| state.seen() == wanted).await;
    }

    /// The deadline of a request that begins now. A request that asks twice uses it for both.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.shared.request_timeout
    }

    /// Sends one command.
    pub async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, LinkError> {
        self.shared.run(command, deadline).await
    }

    /// Sends several commands in one round trip: one pipeline; in a cluster, side by side to the nodes of their
    /// keys. The outer error stands for all of them.
    pub async fn run_all(
        &self,
        commands: Vec<Cmd>,
        deadline: Instant,
    ) -> Result<Vec<Result<Value, LinkError>>, LinkError> {
        let open = self.shared.connection(deadline).await?;
        let answers = timeout_at(deadline, open.connection.clone().many(commands)).await;
        let answers = self.shared.judged(&open, answers)?;
        Ok(answers.into_iter().map(|answer| self.shared.judged(&open, Ok(answer))).collect())
    }
}

impl std::fmt::Debug for RedisLink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisLink").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl State {
    const fn seen(&self) -> LinkState {
        match self {
            Self::Connecting => LinkState::Connecting,
            Self::Up(..) => LinkState::Up,
            Self::Away => LinkState::Away,
        }
    }
}

impl Shared {
    async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, LinkError> {
        let open = self.connection(deadline).await?;
        let answer = timeout_at(deadline, open.connection.clone().one(command)).await;
        self.judged(&open, answer)
    }

    /// The open connection. While the first attempt is under way, it is waited for.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Open>, LinkError> {
        let mut state = self.state.borrow().clone();
        if matches!(state, State::Connecting) {
            let mut states = self.state.subscribe();
            let settled = states.wait_for(|state| !matches!(state, State::Connecting));
            state = match timeout_at(deadline, settled).await {
                Ok(Ok(settled)) => settled.clone(),
                Ok(Err(_)) | Err(_) => State::Away,
            };
        }
        match state {
            State::Up(open) => Ok(open),
            State::Connecting | State::Away => Err(LinkError::Away),
        }
    }

    /// Tells the breaker of the connection how a call over it ended.
    fn judged<Answer>(
        &self,
        open: &Arc<Open>,
        answer: Result<Result<Answer, RedisError>, tokio::time::error::Elapsed>,
    ) -> Result<Answer, LinkError> {
        match answer {
            Ok(Ok(answer)) => {
                open.breaker.succeeded();
                Ok(answer)
            }
            Ok(Err(error)) if fault(&error) == Fault::Answer => {
                open.breaker.succeeded();
                Err(LinkError::Answer(error))
            }
            Ok(Err(error)) => {
                self.give_up(open, State::Connecting);
                Err(LinkError::Lost(error))
            }
            Err(_) => {
                if open.breaker.failed() {
                    self.give_up(open, State::Away);
                }
                Err(LinkError::TimedOut)
            }
        }
    }

    /// Leaves a connection, unless it was left already, and wakes the background task.
    fn give_up(&self, open: &Arc<Open>, next: State) {
        let left = self.state.send_if_modified(|state| {
            let current = matches!(state, State::Up(present) if Arc::ptr_eq(present, open));
            if current {
                *state = next;
            }
            current
        });
        if left {
            self.given_up.notify_one();
        }
    }
}
