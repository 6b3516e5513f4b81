//! The connection that all requests share.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::Span;

use crate::cluster::Cluster;
use crate::metrics::{CommandOperations, name_of, observe_connections};
use crate::server::Server;
use crate::servers::Servers;
use crate::{CommandError, ConnectionState, RedisConfig, RedisEndpoint};

/// A connection to Redis that reconnects by itself, for commands on the hot path.
///
/// It holds one multiplexed connection with `TCP_NODELAY`, to a single server or to each primary of a cluster,
/// behind a circuit breaker. A background task connects, reconnects and probes; requests never do. A command
/// meets one of three [states](ConnectionState):
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
pub struct RedisConnection {
    servers: Arc<Servers>,
    request_timeout: Duration,
    /// `None` if no Redis is configured: then nothing is measured.
    operations: Option<CommandOperations>,
}

impl RedisConnection {
    /// Starts to connect in the background, and returns at once. The name is that of the connection in metrics.
    ///
    /// # Errors
    ///
    /// A certificate does not parse.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, if there is an endpoint.
    pub fn connect(name: &'static str, config: RedisConfig) -> Result<Self, RedisError> {
        let connection = Self::start(config)?;
        observe_connections(name, connection.configured());
        Ok(connection)
    }

    /// Like [`connect`](Self::connect), one connection on each of these runtimes. In metrics they are one
    /// connection, which is up if all of them are.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect).
    pub fn connect_each(
        name: &'static str,
        config: &RedisConfig,
        runtimes: &[Handle],
    ) -> Result<Vec<Self>, RedisError> {
        let start = |runtime: &Handle| {
            let _guard = runtime.enter();
            Self::start(config.clone())
        };
        let connections = runtimes.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        observe_connections(name, connections.iter().filter_map(Self::configured));
        Ok(connections)
    }

    /// What metrics report of it: nothing if no Redis is configured.
    fn configured(&self) -> Option<&Arc<Servers>> {
        self.operations.as_ref().map(|_| &self.servers)
    }

    fn start(config: RedisConfig) -> Result<Self, RedisError> {
        config.install_tls_provider();
        let request_timeout = config.request_timeout;
        let servers = match config.endpoint.clone() {
            RedisEndpoint::None => return Ok(Self::disabled()),
            RedisEndpoint::Single(url) => {
                Servers::Single(Server::start(config.target(&url)?, request_timeout))
            }
            RedisEndpoint::Cluster(seeds) => Servers::Cluster(Cluster::start(config, seeds)),
        };
        Ok(Self { servers: Arc::new(servers), request_timeout, operations: Some(CommandOperations::new()) })
    }

    /// A connection to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub fn disabled() -> Self {
        Self { servers: Arc::new(Servers::None), request_timeout: Duration::ZERO, operations: None }
    }

    /// Whether there is an endpoint. Without one every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.operations.is_some()
    }

    /// Whether it is a connection to a Redis Cluster, where the keys of a command must be in one slot.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(*self.servers, Servers::Cluster(_))
    }

    /// What a command that is sent now would meet.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.servers.state()
    }

    /// The deadline for the commands of a request that starts now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.request_timeout
    }

    /// Sends a command and waits for its reply.
    pub async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        let Some(operations) = &self.operations else { return Err(CommandError::Unavailable) };
        let reply = pin!(self.servers.run(command, deadline));
        operations.of(name_of(command)).observe(reply, CommandError::error_type).await
    }

    /// Sends commands and waits for their replies, one for each: in one pipeline to a server, or in one to each
    /// primary of a cluster.
    pub async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Vec<Result<Value, CommandError>> {
        let replies = self.servers.run_all(commands, deadline);
        match &self.operations {
            Some(operations) => operations.observe_all(commands, replies).await,
            None => replies.await,
        }
    }

    /// Sends a command without a key to the server, or to each primary of a cluster. None if no Redis is
    /// configured.
    pub async fn run_on_each(&self, command: &Cmd, deadline: Instant) -> Vec<Result<Value, CommandError>> {
        self.servers.run_on_each(command, deadline).await
    }

    /// The span of a command that another task sends, with the commands of other requests. A child of the
    /// current span; disabled if there is none.
    #[must_use]
    pub fn span(&self, command: &'static str) -> Span {
        let operations = self.operations.as_ref();
        operations.map_or_else(Span::none, |operations| operations.of(command.as_bytes()).span())
    }
}

impl std::fmt::Debug for RedisConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisConnection").field("state", &self.state()).finish_non_exhaustive()
    }
}
