//! A multiplexed connection to a server, or to all nodes of a cluster.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::Slot;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisResult, ServerErrorKind, Value};

use crate::RedisConfig;
use crate::config::Client;

/// Clones share the sockets: the commands of all callers are pipelined over them.
#[derive(Clone)]
pub(crate) enum Multiplexed {
    Single(MultiplexedConnection),
    /// With one key for each primary, for [`Multiplexed::probe`].
    Cluster(ClusterConnection, Arc<[u32]>),
}

/// How many commands may be queued for a socket before their callers have to wait.
const QUEUE_CAPACITY: usize = 1_024;

impl Multiplexed {
    /// Connects, and checks that every server replies.
    pub(crate) async fn open(client: &Client, config: &RedisConfig) -> RedisResult<Self> {
        let connection = match client {
            Client::Single(client) => {
                let settings = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(config.connect_timeout))
                    // Every command has its own deadline.
                    .set_response_timeout(None)
                    .set_pipeline_buffer_size(QUEUE_CAPACITY);
                Self::Single(client.get_multiplexed_async_connection_with_config(&settings).await?)
            }
            Client::Cluster(client) => Self::Cluster(client.get_async_connection().await?, [].into()),
        };
        // A Redis that replies too late for requests is not available.
        with_timeout(config.request_timeout, connection.initialize()).await
    }

    /// Finds the primaries of a cluster, and checks that every server replies.
    async fn initialize(mut self) -> RedisResult<Self> {
        if matches!(self, Self::Cluster(..)) {
            let slots = self.run(redis::cmd("CLUSTER").arg("SLOTS")).await?;
            let found = keys_of_primaries(&slots);
            if found.is_empty() {
                let error = ErrorKind::Server(ServerErrorKind::ClusterDown);
                return Err((error, "no primary serves a slot").into());
            }
            if let Self::Cluster(_, keys) = &mut self {
                *keys = found.into();
            }
        }
        self.probe().await?;
        Ok(self)
    }

    /// Checks that every server replies.
    ///
    /// `PING` is not enough in a cluster: the client skips nodes that it could not connect to, and a node that
    /// is cut off from the others still replies. So the client asks each primary for a key in one of its slots.
    pub(crate) async fn probe(&mut self) -> RedisResult<()> {
        let commands = match self {
            Self::Single(_) => vec![redis::cmd("PING")],
            Self::Cluster(_, keys) => keys.iter().map(|key| redis::cmd("EXISTS").arg(*key).clone()).collect(),
        };
        self.run_all(&commands).await?.into_iter().try_for_each(|reply| reply?.extract_error().map(drop))
    }

    /// Sends one command. An error reply is an `Err`.
    pub(crate) async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        let reply = match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection, _) => connection.req_packed_command(command).await,
        };
        reply.and_then(Value::extract_error)
    }

    /// Sends several commands. An error reply is a [`Value::ServerError`] or an inner error; the outer error is
    /// that of all commands.
    pub(crate) async fn run_all(&mut self, commands: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::Single(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let replies = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await?;
                Ok(replies.into_iter().map(Ok).collect())
            }
            Self::Cluster(connection, _) => Ok(join_all(commands.iter().map(|command| {
                let mut connection = connection.clone();
                async move { connection.req_packed_command(command).await }
            }))
            .await),
        }
    }
}

/// One key for each primary in a reply to `CLUSTER SLOTS`, a list of (first slot, last slot, primary,
/// replicas…).
fn keys_of_primaries(slots: &Value) -> Vec<u32> {
    let mut primaries: Vec<(&Value, Slot)> = Vec::new();
    for range in slots.as_sequence().into_iter().flatten() {
        if let Some([Value::Int(first), _last, primary, ..]) = range.as_sequence()
            && let Some(slot) = u16::try_from(*first).ok().and_then(Slot::new)
            && primaries.iter().all(|(known, _)| *known != primary)
        {
            primaries.push((primary, slot));
        }
    }
    let mut wanted: HashSet<Slot> = primaries.into_iter().map(|(_, slot)| slot).collect();
    // A key hits each of the 16,384 slots 12 times on average among this many: enough to find one for every
    // primary.
    let mut keys = Vec::with_capacity(wanted.len());
    for key in 0..200_000_u32 {
        if wanted.is_empty() {
            break;
        }
        if wanted.remove(&Slot::for_key(key.to_string())) {
            keys.push(key);
        }
    }
    keys
}

/// Awaits a result, and fails with an I/O error if it takes longer than this.
pub(crate) async fn with_timeout<Output>(
    timeout: Duration,
    result: impl Future<Output = RedisResult<Output>>,
) -> RedisResult<Output> {
    match tokio::time::timeout(timeout, result).await {
        Ok(result) => result,
        Err(elapsed) => Err(std::io::Error::from(elapsed).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primary_has_one_probe_key() {
        let node = |name: &str| Value::Array(vec![Value::BulkString(name.into()), Value::Int(6379)]);
        let range =
            |first, last, primary| Value::Array(vec![Value::Int(first), Value::Int(last), node(primary)]);
        let ranges =
            vec![range(0, 99, "a"), range(100, 100, "b"), range(101, 9_999, "a"), range(10_000, 16_383, "c")];
        let mut slots: Vec<_> = keys_of_primaries(&Value::Array(ranges))
            .into_iter()
            .map(|key| {
                (0..16_384).find(|slot| Slot::new(*slot) == Some(Slot::for_key(key.to_string()))).unwrap()
            })
            .collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 100, 10_000]);
        assert!(keys_of_primaries(&Value::Nil).is_empty());
    }
}
