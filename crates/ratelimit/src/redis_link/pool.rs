//! The way to Redis of everything that no request waits for: a pool of connections that are tried before their use.

use std::time::Duration;

use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts, cluster};
use futures_util::future::join_all;
use redis::aio::ConnectionLike;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
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
        in_time(self.patience, async { self.take().await?.send(commands).await }).await
    }

    /// Sends several commands that write, as [`run_all`](Self::run_all) does, and then waits until the replicas that
    /// are connected hold what was written, for `longest` at most: below 500 ms, which is how long the client waits for
    /// any response.
    pub async fn run_replicated(&self, commands: &[Cmd], longest: Duration) -> Result<Written, LinkError> {
        // WAIT speaks of what was written over its own connection.
        let written = async {
            let mut connection = self.take().await?;
            let answers = connection.send(commands).await?;
            Ok(Written { answers, replication: connection.replicated(longest).await })
        };
        in_time(self.patience + longest, written).await
    }

    async fn take(&self) -> Result<Taken, LinkError> {
        match &self.pool {
            None => Err(LinkError::Away),
            Some(Kind::Single(pool)) => Ok(Taken::Single(pool.get().await.map_err(not_taken)?)),
            Some(Kind::Cluster(pool)) => {
                let connection = pool.get().await.map_err(not_taken)?;
                Ok(Taken::Cluster(connection.clone()))
            }
        }
    }
}

/// What became of commands that write.
#[derive(Debug)]
pub struct Written {
    /// The answers to the commands.
    pub answers: Vec<Result<Value, LinkError>>,
    /// How many replicas hold what they wrote; an error where Redis does not say.
    pub replication: Result<Replication, LinkError>,
}

/// How many replicas hold what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replication {
    /// The replicas that are connected to their primaries.
    pub replicas: u64,
    /// Those of them that confirmed in time.
    pub confirmed: u64,
}

impl Replication {
    /// Whether every replica confirmed.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.confirmed >= self.replicas
    }
}

/// A connection that was taken from the pool.
enum Taken {
    Single(deadpool_redis::Connection),
    /// Clones share the sockets.
    Cluster(ClusterConnection),
}

impl Taken {
    async fn send(&mut self, commands: &[Cmd]) -> Result<Vec<Result<Value, LinkError>>, LinkError> {
        match self {
            Self::Single(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let answers = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await;
                Ok(answers.map_err(LinkError::Lost)?.into_iter().map(judged).collect())
            }
            Self::Cluster(connection) => {
                Ok(join_all(commands.iter().map(|command| {
                    let mut connection = connection.clone();
                    async move {
                        connection.req_packed_command(command).await.map_or_else(|e| Err(failed(e)), judged)
                    }
                }))
                .await)
            }
        }
    }

    /// Waits for the replicas of every primary.
    async fn replicated(&mut self, longest: Duration) -> Result<Replication, LinkError> {
        let info = redis::cmd("INFO").arg("replication").clone();
        let waited = match self {
            Self::Single(connection) => {
                let replicas =
                    connected_replicas(&connection.req_packed_command(&info).await.map_err(failed)?);
                let wait = wait(replicas, longest);
                vec![confirmed(replicas, connection.req_packed_command(&wait).await)?]
            }
            Self::Cluster(connection) => {
                let primaries = connection.req_packed_command(&info).await.map_err(failed)?;
                let primaries = primaries.into_map_iter().map_err(|_| LinkError::Away)?;
                let waits = primaries.filter_map(|(address, info)| {
                    let (replicas, mut connection) = (connected_replicas(&info), connection.clone());
                    let node = by_address(&address)?;
                    Some(async move {
                        let waited = connection.route_command(wait(replicas, longest), node).await;
                        confirmed(replicas, waited)
                    })
                });
                join_all(waits).await.into_iter().collect::<Result<Vec<_>, _>>()?
            }
        };
        let sum = |count: fn(&Replication) -> u64| waited.iter().map(count).sum();
        Ok(Replication { replicas: sum(|one| one.replicas), confirmed: sum(|one| one.confirmed) })
    }
}

/// Without a replica it returns at once.
fn wait(replicas: u64, longest: Duration) -> Cmd {
    // Zero would mean without an end.
    let longest_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX).max(1);
    redis::cmd("WAIT").arg(replicas).arg(longest_ms).clone()
}

fn confirmed(replicas: u64, answer: RedisResult<Value>) -> Result<Replication, LinkError> {
    match answer.and_then(Value::extract_error).map_err(failed)? {
        Value::Int(count) => {
            let confirmed = u64::try_from(count).unwrap_or(0).min(replicas);
            Ok(Replication { replicas, confirmed })
        }
        _ => Err(LinkError::Away),
    }
}

/// The replicas that are connected to a server, by its `INFO replication`.
fn connected_replicas(info: &Value) -> u64 {
    let text = redis::from_redis_value_ref::<String>(info).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
    count.and_then(|count| count.trim_end().parse().ok()).unwrap_or(0)
}

fn by_address(address: &Value) -> Option<RoutingInfo> {
    let address = redis::from_redis_value_ref::<String>(address).ok()?;
    let (host, port) = address.rsplit_once(':')?;
    let node = SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port: port.parse().ok()? };
    Some(RoutingInfo::SingleNode(node))
}

async fn in_time<Output>(
    longest: Duration,
    attempt: impl Future<Output = Result<Output, LinkError>>,
) -> Result<Output, LinkError> {
    timeout(longest, attempt).await.unwrap_or(Err(LinkError::TimedOut))
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
