//! The connection that all requests share.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chart_index_instrumentation::metrics;
use redis::{Cmd, RedisError, Value};
use tokio::runtime::{self, Handle};
use tokio::time::Instant;
use tracing::Span;

use crate::metrics::{CommandOperations, name_of};
use crate::servers::Servers;
use crate::{CommandError, ConnectionState, RedisConfig, RedisEndpoint};

/// A connection to Redis that reconnects by itself, for commands on the hot path.
///
/// On each of its runtimes it holds one multiplexed connection with `TCP_NODELAY`, to a single server or to
/// each primary of a cluster, behind a circuit breaker. A command uses the one of the current runtime, so that
/// its reply wakes no other thread. A background task connects, reconnects and probes; requests never do. A
/// command meets one of three [states](ConnectionState):
///
/// - *Connected*: the command is sent at once. Its caller waits for the reply, at most until the deadline.
/// - *Connecting*: after the start or the loss of a connection, a command waits for the first attempt to
///   connect, at most until its deadline. So a connection that a proxy closes fails no command that is sent
///   later.
/// - *Unavailable*: the command fails at once with [`CommandError::Unavailable`], until the background task has
///   connected and a probe has succeeded within [`RedisConfig::request_timeout`]. It tries at once, and then
///   again after 50 ms to 600 ms.
///
/// Each primary of a cluster has a state and a circuit breaker of its own: while one is down or cut off from
/// the others, the commands for its keys fail at once. A replica that replaces it is found within a second.
///
/// Clones share the connection. It is closed when the last clone is dropped.
#[derive(Clone)]
pub struct RedisConnection(
    /// `None` if no Redis is configured: then nothing is measured.
    Option<Arc<Shared>>,
);

struct Shared {
    /// Those of each runtime.
    servers: Vec<(runtime::Id, Servers)>,
    request_timeout: Duration,
    operations: CommandOperations,
}

impl RedisConnection {
    /// Starts to connect in the background, on the current runtime, and returns at once. The name is that of
    /// the connection in metrics.
    ///
    /// # Errors
    ///
    /// A certificate does not parse.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn connect(name: &'static str, config: &RedisConfig) -> Result<Self, RedisError> {
        Self::connect_on(name, config, &[Handle::current()])
    }

    /// Like [`connect`](Self::connect), on each of these runtimes. Any other one uses the connection of the
    /// first.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect).
    pub fn connect_on(
        name: &'static str,
        config: &RedisConfig,
        runtimes: &[Handle],
    ) -> Result<Self, RedisError> {
        if matches!(config.endpoint, RedisEndpoint::None) {
            return Ok(Self::disabled());
        }
        config.install_tls_provider();
        let start = |runtime: &Handle| {
            let _guard = runtime.enter();
            Servers::start(config).map(|servers| (runtime.id(), servers))
        };
        let servers = runtimes.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let operations = CommandOperations::new();
        let shared = Arc::new(Shared { servers, request_timeout: config.request_timeout, operations });
        metrics().observe(&shared, move |shared, metrics| {
            metrics.chart_index_redis_connected.set([name], shared.is_connected());
        });
        Ok(Self(Some(shared)))
    }

    /// A connection to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub const fn disabled() -> Self {
        Self(None)
    }

    /// The servers for the current runtime; `None` if no Redis is configured.
    fn servers(&self) -> Option<(&Shared, &Servers)> {
        let shared = self.0.as_deref()?;
        let current = Handle::try_current().ok().map(|runtime| runtime.id());
        let own = shared.servers.iter().find(|(runtime, _)| Some(*runtime) == current);
        own.or_else(|| shared.servers.first()).map(|(_, servers)| (shared, servers))
    }

    /// Whether there is an endpoint. Without one every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it is a connection to a Redis Cluster, where the keys of a command must be in one slot.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.servers().is_some_and(|(_, servers)| servers.is_cluster())
    }

    /// What a command that is sent now would meet.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.servers().map_or(ConnectionState::Unavailable, |(_, servers)| servers.state())
    }

    /// The deadline for the commands of a request that starts now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.0.as_ref().map_or(Duration::ZERO, |shared| shared.request_timeout)
    }

    /// Sends a command and waits for its reply.
    pub async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        let (shared, servers) = self.servers().ok_or(CommandError::Unavailable)?;
        let reply = pin!(servers.run(command, deadline));
        shared.operations.of(name_of(command)).observe(reply, CommandError::error_type).await
    }

    /// Sends commands and waits for their replies, one for each: in one pipeline to each primary.
    pub async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Vec<Result<Value, CommandError>> {
        let Some((shared, servers)) = self.servers() else {
            return CommandError::Unavailable.of_all(commands);
        };
        shared.operations.observe_all(commands, servers.run_all(commands, deadline)).await
    }

    /// Sends a command without a key to the server, or to each primary of a cluster. None if no Redis is
    /// configured.
    pub async fn run_on_each(&self, command: &Cmd, deadline: Instant) -> Vec<Result<Value, CommandError>> {
        let Some((_, servers)) = self.servers() else { return Vec::new() };
        servers.run_on_each(command, deadline).await
    }

    /// The span of a command that another task sends, with the commands of other requests. A child of the
    /// current span; disabled if there is none.
    #[must_use]
    pub fn span(&self, command: &'static str) -> Span {
        self.0.as_ref().map_or_else(Span::none, |shared| shared.operations.of(command.as_bytes()).span())
    }
}

impl Shared {
    /// Whether the connections of all runtimes are up.
    fn is_connected(&self) -> bool {
        self.servers.iter().all(|(_, servers)| servers.state() == ConnectionState::Connected)
    }
}

impl std::fmt::Debug for RedisConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisConnection").field("state", &self.state()).finish_non_exhaustive()
    }
}
