//! The way to Redis of everything that no request waits for: a pool of connections that are tried before their use.

use std::time::Duration;

use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts, cluster};
use futures_util::future::join_all;
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::time::timeout;

use super::LinkError;
use super::config::{RedisEndpoint, RedisLinkConfig};
use super::connection::{Fault, fault};

/// Connections that are idle for minutes between two uses, as those of an indexer are. Each is asked for a sign of
/// life when it is taken from the pool (a second round trip, which is why requests go over a
/// [`RedisLink`](super::RedisLink)), so that one which a proxy closed meanwhile costs no command.
#[derive(Clone)]
pub struct RedisPool {
    pool: Option<Kind>,
    patience: Duration,
}

#[derive(Clone)]
enum Kind {
    Single(Pool),
    Cluster(cluster::Pool),
}

/// Few: commands travel in batches.
const CONNECTIONS: usize = 2;

impl RedisPool {
    /// A pool that connects when it is first used. One batch of commands may take as long as `patience`.
    ///
    /// # Errors
    ///
    /// Where the endpoint cannot be used at all.
    pub fn new(config: &RedisLinkConfig, patience: Duration) -> Result<Self, RedisError> {
        config.prepare_tls();
        let timeouts = Timeouts {
            wait: Some(patience),
            create: Some(config.connect_timeout),
            recycle: Some(config.connect_timeout),
        };
        let pool = match &config.endpoint {
            RedisEndpoint::None => None,
            RedisEndpoint::Single(url) => {
                let manager = Manager::new(config.client(url)?.get_connection_info().clone())?;
                let pool = Pool::builder(manager).max_size(CONNECTIONS).timeouts(timeouts);
                Some(Kind::Single(pool.runtime(Runtime::Tokio1).build().map_err(no_runtime)?))
            }
            RedisEndpoint::Cluster(urls) => {
                let nodes = urls.iter().map(|url| url.connection_info().clone()).collect();
                let manager = cluster::Manager::new(nodes, false)?;
                let pool = cluster::Pool::builder(manager).max_size(CONNECTIONS).timeouts(timeouts);
                Some(Kind::Cluster(pool.runtime(Runtime::Tokio1).build().map_err(no_runtime)?))
            }
        };
        Ok(Self { pool, patience })
    }

    /// Whether there is a Redis at all.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.pool.is_some()
    }

    /// Sends several commands: in one pipeline; in a cluster, side by side to the nodes of their keys. The outer
    /// error stands for all of them.
    pub async fn run_all(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, LinkError>>, LinkError> {
        match timeout(self.patience, self.send(commands)).await {
            Ok(answers) => answers,
            Err(_) => Err(LinkError::TimedOut),
        }
    }

    async fn send(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, LinkError>>, LinkError> {
        match &self.pool {
            None => Err(LinkError::Away),
            Some(Kind::Single(pool)) => {
                let mut connection = pool.get().await.map_err(not_taken)?;
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let answers = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await;
                Ok(answers.map_err(LinkError::Lost)?.into_iter().map(judged).collect())
            }
            Some(Kind::Cluster(pool)) => {
                let connection = pool.get().await.map_err(not_taken)?;
                let sent = commands.iter().map(|command| {
                    let mut connection = (*connection).clone();
                    async move {
                        connection.req_packed_command(command).await.map_or_else(|e| Err(failed(e)), judged)
                    }
                });
                Ok(join_all(sent).await)
            }
        }
    }
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisPool").field("patience", &self.patience).finish_non_exhaustive()
    }
}

fn judged(answer: Value) -> Result<Value, LinkError> {
    answer.extract_error().map_err(failed)
}

fn failed(error: RedisError) -> LinkError {
    match fault(&error) {
        Fault::Answer => LinkError::Answer(error),
        Fault::Lost => LinkError::Lost(error),
    }
}

fn not_taken(error: PoolError) -> LinkError {
    match error {
        PoolError::Backend(error) => LinkError::Lost(error),
        PoolError::Timeout(_) => LinkError::TimedOut,
        _ => LinkError::Away,
    }
}

fn no_runtime(error: deadpool_redis::BuildError) -> RedisError {
    std::io::Error::other(error).into()
}
