//! A pool of connections for commands that should not share a connection with requests.

use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts, cluster};
use futures_util::future::join_all;
use redis::aio::ConnectionLike;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, Value};
use tokio::time::{Instant, timeout_at};

use crate::config::with_tcp_settings;
use crate::metrics::{CommandOperations, POOL_COMMANDS, Replies};
use crate::{CommandError, RedisConfig, RedisEndpoint};

/// A pool of connections, for commands with large replies or arguments: on the connection of all requests, the
/// commands after them would wait.
///
/// The pool pings a connection before it is used, so that one which a proxy closed in the meantime fails no
/// command. Single commands of requests use a [`RedisConnection`](crate::RedisConnection) (decision 0041).
/// Clones share the connections.
#[derive(Clone)]
pub struct RedisPool {
    pool: Option<Kind>,
    operations: CommandOperations,
}

#[derive(Clone)]
enum Kind {
    Single(Pool),
    Cluster(cluster::Pool),
}

/// Commands that are sent together use one of them.
const MAX_CONNECTIONS: usize = 4;

impl RedisPool {
    /// A pool that connects when it is first used.
    ///
    /// # Errors
    ///
    /// The endpoint is invalid, as for [`RedisConnection::connect`](crate::RedisConnection::connect).
    pub fn new(config: &RedisConfig) -> Result<Self, RedisError> {
        config.install_tls_provider();
        let timeouts = Timeouts {
            // Commands have a deadline.
            wait: None,
            create: Some(config.connect_timeout),
            recycle: Some(config.request_timeout),
        };
        let pool = match &config.endpoint {
            RedisEndpoint::None => None,
            RedisEndpoint::Single(url) => {
                let settings = AsyncConnectionConfig::new().set_response_timeout(None);
                let manager = Manager::new_with_config(with_tcp_settings(url), settings)?;
                let pool = Pool::builder(manager).max_size(MAX_CONNECTIONS).timeouts(timeouts);
                Some(Kind::Single(pool.runtime(Runtime::Tokio1).build().map_err(build_error)?))
            }
            RedisEndpoint::Cluster(urls) => {
                let manager = cluster::Manager::new(urls.iter().map(with_tcp_settings).collect(), false)?;
                let pool = cluster::Pool::builder(manager).max_size(MAX_CONNECTIONS).timeouts(timeouts);
                Some(Kind::Cluster(pool.runtime(Runtime::Tokio1).build().map_err(build_error)?))
            }
        };
        Ok(Self { pool, operations: CommandOperations::new(POOL_COMMANDS) })
    }

    /// A pool of connections to no Redis: every command fails with [`CommandError::Unavailable`].
    #[must_use]
    pub fn disabled() -> Self {
        Self { pool: None, operations: CommandOperations::new(&[]) }
    }

    /// Sends commands and waits for their replies: in one pipeline to a server, or concurrently to the nodes of
    /// a cluster. The outer error is that of all commands.
    pub async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Result<Replies, CommandError> {
        let Some(pool) = &self.pool else { return Err(CommandError::Unavailable) };
        // Boxed: the futures of callers are small where they do not use the pool.
        let replies = Box::pin(timeout_at(deadline, run_all(pool, commands)));
        let replies = async { replies.await.unwrap_or(Err(CommandError::TimedOut)) };
        self.operations.batch(commands).observe(replies).await
    }
}

async fn run_all(pool: &Kind, commands: &[Cmd]) -> Result<Replies, CommandError> {
    match pool {
        Kind::Single(pool) => {
            let mut pipeline = Pipeline::with_capacity(commands.len());
            for command in commands {
                pipeline.add_command(command.clone());
            }
            let mut connection = pool.get().await.map_err(pool_error)?;
            let replies = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await;
            Ok(replies.map_err(CommandError::Disconnected)?.into_iter().map(without_error).collect())
        }
        Kind::Cluster(pool) => {
            let connection = pool.get().await.map_err(pool_error)?;
            Ok(join_all(commands.iter().map(|command| {
                let mut connection = connection.clone();
                async move { without_error(connection.req_packed_command(command).await?) }
            }))
            .await)
        }
    }
}

fn without_error(reply: Value) -> Result<Value, CommandError> {
    Ok(reply.extract_error()?)
}

fn pool_error(error: PoolError) -> CommandError {
    match error {
        PoolError::Backend(error) => CommandError::Disconnected(error),
        PoolError::Timeout(_) => CommandError::TimedOut,
        _ => CommandError::Unavailable,
    }
}

fn build_error(error: deadpool_redis::BuildError) -> RedisError {
    std::io::Error::other(error).into()
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RedisPool")
            .field("is_configured", &self.pool.is_some())
            .finish_non_exhaustive()
    }
}
