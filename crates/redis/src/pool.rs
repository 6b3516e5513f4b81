//! Connections for commands that should not share one with requests.

use std::sync::Arc;

use deadpool_redis::{Connection, Manager, Pool, PoolError, Runtime, Timeouts};
use redis::aio::ConnectionLike;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, Value};
use tokio::time::{Instant, timeout_at};

use crate::error::Replies;
use crate::metrics::CommandOperations;
use crate::{CommandError, RedisConfig, RedisConnection, RedisEndpoint};

/// Connections for commands with large replies or arguments: on the connection of all requests, the commands
/// after them would wait (decision 0067). Clones share them.
///
/// To a server they are a pool, which pings a connection before it is used, so that one which a proxy closed in
/// the meantime fails no command, and closes one whose server is read-only or loading. In a cluster they are
/// one connection to each primary.
#[derive(Clone)]
pub struct RedisPool(Kind);

#[derive(Clone)]
enum Kind {
    None,
    Server(Pool, Arc<CommandOperations>),
    Cluster(RedisConnection),
}

/// Commands that are sent together use one of them.
const MAX_CONNECTIONS: usize = 4;

impl RedisPool {
    /// A pool that connects when it is first used. In a cluster it connects at once.
    ///
    /// # Errors
    ///
    /// As for [`RedisConnection::connect`].
    pub fn new(config: &RedisConfig) -> Result<Self, RedisError> {
        let url = match &config.endpoint {
            RedisEndpoint::None => return Ok(Self::disabled()),
            RedisEndpoint::Cluster(_) => {
                return RedisConnection::connect("batches", config).map(Kind::Cluster).map(Self);
            }
            RedisEndpoint::Single(url) => url,
        };
        config.install_tls_provider();
        let timeouts = Timeouts {
            // Commands have a deadline.
            wait: None,
            create: Some(config.connect_timeout),
            recycle: Some(config.request_timeout),
        };
        let settings = AsyncConnectionConfig::new().set_response_timeout(None);
        let manager = Manager::new_with_config(url.with_tcp_settings(), settings)?;
        let pool = Pool::builder(manager).max_size(MAX_CONNECTIONS).timeouts(timeouts);
        let pool = pool.runtime(Runtime::Tokio1).build().map_err(std::io::Error::other)?;
        Ok(Self(Kind::Server(pool, Arc::new(CommandOperations::new()))))
    }

    /// A pool of connections to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub const fn disabled() -> Self {
        Self(Kind::None)
    }

    /// Sends commands and waits for their replies, one for each: in one pipeline to a server, or in one to each
    /// primary of a cluster.
    pub async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Replies {
        match &self.0 {
            Kind::None => CommandError::Unavailable.of_all(commands),
            Kind::Cluster(connection) => connection.run_all(commands, deadline).await,
            Kind::Server(pool, operations) => {
                // Boxed: the futures of callers are small where they do not use the pool.
                let replies = Box::pin(timeout_at(deadline, run_all(pool, commands)));
                let replies = async {
                    let replies = replies.await.unwrap_or(Err(CommandError::TimedOut));
                    replies.unwrap_or_else(|error| error.of_all(commands))
                };
                operations.observe_all(commands, replies).await
            }
        }
    }
}

async fn run_all(pool: &Pool, commands: &[Cmd]) -> Result<Replies, CommandError> {
    let mut pipeline = Pipeline::with_capacity(commands.len());
    for command in commands {
        pipeline.add_command(command.clone());
    }
    let mut connection = pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) => CommandError::Disconnected(error),
        PoolError::Timeout(_) => CommandError::TimedOut,
        _ => CommandError::Unavailable,
    })?;
    let replies = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await;
    let without_error = |reply: Value| Ok(reply.extract_error()?);
    let replies: Replies =
        replies.map_err(CommandError::Disconnected)?.into_iter().map(without_error).collect();
    if replies.iter().any(|reply| matches!(reply, Err(CommandError::Disconnected(_)))) {
        // It still replies to pings, so that the pool would use it again.
        drop(Connection::take(connection));
    }
    Ok(replies)
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_configured = !matches!(self.0, Kind::None);
        formatter.debug_struct("RedisPool").field("is_configured", &is_configured).finish_non_exhaustive()
    }
}
