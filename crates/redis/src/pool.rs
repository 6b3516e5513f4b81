//! A pool of connections for commands that no request waits for.

use std::time::Duration;

use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts, cluster};
use futures_util::future::join_all;
use redis::aio::ConnectionLike;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::time::{Instant, timeout_at};

use crate::metrics::{BACKGROUND_COMMANDS, CommandOperations, Replies};
use crate::{CommandError, RedisConfig, RedisEndpoint};

/// A pool of connections that may be idle for minutes, as those of an indexer are.
///
/// The pool pings a connection before it is used, so that one which a proxy closed in the meantime fails no
/// command. Requests use a [`RedisConnection`](crate::RedisConnection) instead (decision 0041).
#[derive(Clone)]
pub struct RedisPool {
    pool: Option<Kind>,
    timeout: Duration,
    operations: CommandOperations,
}

#[derive(Clone)]
enum Kind {
    Single(Pool),
    Cluster(cluster::Pool),
}

/// Two are enough, since commands are sent in batches.
const MAX_CONNECTIONS: usize = 2;

impl RedisPool {
    /// A pool that connects when it is first used. A batch of commands fails if it takes longer than `timeout`.
    ///
    /// # Errors
    ///
    /// The endpoint is invalid.
    pub fn new(config: &RedisConfig, timeout: Duration) -> Result<Self, RedisError> {
        config.install_tls_provider();
        let timeouts = Timeouts {
            wait: Some(timeout),
            create: Some(config.connect_timeout),
            recycle: Some(config.connect_timeout),
        };
        let pool = match &config.endpoint {
            RedisEndpoint::None => None,
            RedisEndpoint::Single(url) => {
                let manager = Manager::new(config.server_client(url)?.get_connection_info().clone())?;
                let pool = Pool::builder(manager).max_size(MAX_CONNECTIONS).timeouts(timeouts);
                Some(Kind::Single(pool.runtime(Runtime::Tokio1).build().map_err(build_error)?))
            }
            RedisEndpoint::Cluster(urls) => {
                let nodes = urls.iter().map(|url| url.connection_info().clone()).collect();
                let manager = cluster::Manager::new(nodes, false)?;
                let pool = cluster::Pool::builder(manager).max_size(MAX_CONNECTIONS).timeouts(timeouts);
                Some(Kind::Cluster(pool.runtime(Runtime::Tokio1).build().map_err(build_error)?))
            }
        };
        Ok(Self { pool, timeout, operations: CommandOperations::new(BACKGROUND_COMMANDS) })
    }

    /// Whether there is an endpoint.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.pool.is_some()
    }

    /// Sends several commands: in one pipeline to a server, or concurrently to the nodes of a cluster. The
    /// outer error is that of all commands.
    pub async fn run_all(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, CommandError>>, CommandError> {
        let deadline = Instant::now() + self.timeout;
        let replies = Box::pin(async { self.get().await?.run_all(commands).await });
        self.observe(commands, deadline, replies).await
    }

    /// Sends several commands that write, like [`run_all`](Self::run_all), and then waits up to
    /// `replication_timeout` for the connected replicas to confirm what was written. The timeout must be below
    /// 500 ms, which is how long the client waits for any reply.
    pub async fn run_replicated(
        &self,
        commands: &[Cmd],
        replication_timeout: Duration,
    ) -> Result<ReplicatedWrite, CommandError> {
        let deadline = Instant::now() + self.timeout + replication_timeout;
        // `WAIT` refers to the writes of its own connection.
        let mut connection = None;
        let write = Box::pin(async { connection.insert(self.get().await?).run_all(commands).await });
        let replies = self.observe(commands, deadline, write).await?;
        let mut connection = connection.ok_or(CommandError::Unavailable)?;
        let wait = async {
            let replication = timeout_at(deadline, Box::pin(connection.wait(replication_timeout))).await;
            replication.unwrap_or(Err(CommandError::TimedOut))
        };
        match self.operations.of(b"WAIT").observe(wait, CommandError::error_type).await {
            Err(CommandError::TimedOut) => Err(CommandError::TimedOut),
            replication => Ok(ReplicatedWrite { replies, replication }),
        }
    }

    /// Observes commands that are sent together, and fails at the deadline.
    async fn observe(
        &self,
        commands: &[Cmd],
        deadline: Instant,
        replies: impl Future<Output = Result<Replies, CommandError>>,
    ) -> Result<Replies, CommandError> {
        let replies = async { timeout_at(deadline, replies).await.unwrap_or(Err(CommandError::TimedOut)) };
        self.operations.batch(commands).observe(replies).await
    }

    async fn get(&self) -> Result<Pooled, CommandError> {
        match &self.pool {
            None => Err(CommandError::Unavailable),
            Some(Kind::Single(pool)) => Ok(Pooled::Single(pool.get().await.map_err(pool_error)?)),
            Some(Kind::Cluster(pool)) => {
                let connection = pool.get().await.map_err(pool_error)?;
                Ok(Pooled::Cluster(connection.clone()))
            }
        }
    }
}

/// The outcome of [`RedisPool::run_replicated`].
#[derive(Debug)]
pub struct ReplicatedWrite {
    /// One reply for each command, in their order.
    pub replies: Vec<Result<Value, CommandError>>,
    /// How many replicas confirmed the writes; an error if Redis does not report it.
    pub replication: Result<Replication, CommandError>,
}

/// How many replicas confirmed a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replication {
    /// The replicas that are connected to their primaries.
    pub replicas: u64,
    /// Those of them that confirmed the write in time.
    pub confirmed: u64,
}

impl Replication {
    /// Whether every replica confirmed.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.confirmed >= self.replicas
    }
}

enum Pooled {
    Single(deadpool_redis::Connection),
    /// Clones share the sockets.
    Cluster(ClusterConnection),
}

impl Pooled {
    async fn run_all(&mut self, commands: &[Cmd]) -> Result<Replies, CommandError> {
        match self {
            Self::Single(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let replies = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await;
                Ok(replies.map_err(CommandError::Disconnected)?.into_iter().map(without_error).collect())
            }
            Self::Cluster(connection) => Ok(join_all(commands.iter().map(|command| {
                let mut connection = connection.clone();
                async move { without_error(connection.req_packed_command(command).await?) }
            }))
            .await),
        }
    }

    /// Waits for the replicas of every primary.
    async fn wait(&mut self, replication_timeout: Duration) -> Result<Replication, CommandError> {
        let info = redis::cmd("INFO").arg("replication").clone();
        let primaries = match self {
            Self::Single(connection) => {
                let replicas = connected_replicas(&connection.req_packed_command(&info).await?);
                let wait = wait_command(replicas, replication_timeout);
                vec![replication(replicas, connection.req_packed_command(&wait).await)?]
            }
            Self::Cluster(connection) => {
                let infos = connection.req_packed_command(&info).await?;
                let infos = infos.into_map_iter().map_err(|_| CommandError::UnexpectedReply)?;
                let waits = infos.filter_map(|(address, info)| {
                    let (replicas, mut connection) = (connected_replicas(&info), connection.clone());
                    let node = route_to(&address)?;
                    Some(async move {
                        let wait = wait_command(replicas, replication_timeout);
                        replication(replicas, connection.route_command(wait, node).await)
                    })
                });
                join_all(waits).await.into_iter().collect::<Result<Vec<_>, _>>()?
            }
        };
        let sum = |count: fn(&Replication) -> u64| primaries.iter().map(count).sum();
        Ok(Replication {
            replicas: sum(|primary| primary.replicas),
            confirmed: sum(|primary| primary.confirmed),
        })
    }
}

/// `WAIT`, which returns at once where there are no replicas.
fn wait_command(replicas: u64, timeout: Duration) -> Cmd {
    // Zero would be no timeout.
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1);
    redis::cmd("WAIT").arg(replicas).arg(timeout_ms).clone()
}

/// The outcome of `WAIT`.
fn replication(replicas: u64, reply: RedisResult<Value>) -> Result<Replication, CommandError> {
    match reply.and_then(Value::extract_error)? {
        Value::Int(count) => {
            let confirmed = u64::try_from(count).unwrap_or(0).min(replicas);
            Ok(Replication { replicas, confirmed })
        }
        _ => Err(CommandError::UnexpectedReply),
    }
}

/// The number of replicas that are connected to a server, from its `INFO replication`.
fn connected_replicas(info: &Value) -> u64 {
    let text = redis::from_redis_value_ref::<String>(info).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
    count.and_then(|count| count.trim_end().parse().ok()).unwrap_or(0)
}

fn route_to(address: &Value) -> Option<RoutingInfo> {
    let address = redis::from_redis_value_ref::<String>(address).ok()?;
    let (host, port) = address.rsplit_once(':')?;
    let node = SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port: port.parse().ok()? };
    Some(RoutingInfo::SingleNode(node))
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisPool").field("timeout", &self.timeout).finish_non_exhaustive()
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
