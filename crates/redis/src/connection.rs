//! The connection that all requests share.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::Span;

use crate::config::Client;
use crate::connection_state::{CurrentConnection, SharedConnection};
use crate::metrics::{CommandOperations, REQUEST_COMMANDS, name_of, observe_connections};
use crate::{CommandError, ConnectionState, RedisConfig, supervisor};

/// A connection to Redis that reconnects by itself, for commands on the hot path.
///
/// It holds one multiplexed connection with `TCP_NODELAY`, to a single server or to each node of a cluster,
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
/// One circuit breaker serves all nodes of a cluster, and the probe asks every primary, when connecting and
/// once a second: while one of them is down and not replaced, or cut off from the others, the whole cluster
/// counts as unavailable.
///
/// Clones share the connection. It is closed when the last clone is dropped.
#[derive(Clone)]
pub struct RedisConnection {
    shared: Arc<SharedConnection>,
    /// `None` if no Redis is configured: then nothing is measured.
    operations: Option<CommandOperations>,
    is_cluster: bool,
    _supervisor: Option<Arc<AbortOnDropHandle<()>>>,
}

impl RedisConnection {
    /// Starts to connect in the background, and returns at once. The name is that of the connection in metrics.
    ///
    /// # Errors
    ///
    /// The endpoint is invalid: the credentials of the nodes of a cluster differ, or a certificate does not
    /// parse.
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
    fn configured(&self) -> Option<&Arc<SharedConnection>> {
        self.operations.as_ref().map(|_| &self.shared)
    }

    fn start(config: RedisConfig) -> Result<Self, RedisError> {
        config.install_tls_provider();
        let Some(client) = config.client()? else { return Ok(Self::disabled()) };
        let shared = Arc::new(SharedConnection {
            request_timeout: config.request_timeout,
            state: watch::Sender::new(CurrentConnection::Connecting),
            discarded: Notify::new(),
        });
        let is_cluster = matches!(client, Client::Cluster(_));
        let supervisor = tokio::spawn(supervisor::run(Arc::clone(&shared), client, config));
        let operations = Some(CommandOperations::new(REQUEST_COMMANDS));
        Ok(Self {
            shared,
            operations,
            is_cluster,
            _supervisor: Some(Arc::new(AbortOnDropHandle::new(supervisor))),
        })
    }

    /// A connection to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub fn disabled() -> Self {
        let shared = SharedConnection {
            request_timeout: Duration::ZERO,
            state: watch::Sender::new(CurrentConnection::Unavailable),
            discarded: Notify::new(),
        };
        Self { shared: Arc::new(shared), operations: None, is_cluster: false, _supervisor: None }
    }

    /// Whether there is an endpoint. Without one every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.operations.is_some()
    }

    /// Whether it is a connection to a Redis Cluster, where the keys of a command must be on one node.
    #[must_use]
    pub const fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// What a command that is sent now would meet.
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
        let Some(operations) = &self.operations else { return Err(CommandError::Unavailable) };
        let reply = async {
            let connected = self.shared.wait_for_connection(deadline).await?;
            let reply = timeout_at(deadline, connected.connection.clone().run(command)).await;
            self.shared.record(&connected, reply)
        };
        operations.of(name_of(command)).observe(reply, CommandError::error_type).await
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
