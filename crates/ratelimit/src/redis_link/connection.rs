//! One open connection, to a server or to a cluster.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::Slot;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
};

use super::config::{Opener, RedisLinkConfig};

/// Cheap to clone; all clones share the sockets, and their commands travel together.
#[derive(Clone)]
pub(super) enum Connection {
    Single(MultiplexedConnection),
    /// With a key of each primary.
    Cluster(ClusterConnection, Arc<[u32]>),
}

/// The commands that may wait in memory for the socket, before their senders do.
const QUEUE: usize = 1_024;

impl Connection {
    /// Connects, and checks that commands are answered.
    pub(super) async fn open(opener: &Opener, config: &RedisLinkConfig) -> RedisResult<Self> {
        let connection = match opener {
            Opener::Single(client) => {
                let settings = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(config.connect_timeout))
                    // Every request has its own deadline.
                    .set_response_timeout(None)
                    .set_pipeline_buffer_size(QUEUE);
                Self::Single(client.get_multiplexed_async_connection_with_config(&settings).await?)
            }
            Opener::Cluster(client) => Self::Cluster(client.get_async_connection().await?, [].into()),
        };
        // Within the time of a request: a Redis that answers, but too late, is not back.
        in_time(config.request_timeout, connection.probed()).await
    }

    /// Finds the primaries of a cluster, and checks that every server answers.
    async fn probed(mut self) -> RedisResult<Self> {
        if matches!(self, Self::Cluster(..)) {
            let slots = self.one(redis::cmd("CLUSTER").arg("SLOTS")).await?;
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

    /// Checks that every server answers. The client for a cluster passes over nodes that it could not connect to,
    /// even in a `PING` to all, and a node that is cut off from the others answers that as well: so each primary is
    /// asked for a key of its own.
    pub(super) async fn probe(&mut self) -> RedisResult<()> {
        let commands = match self {
            Self::Single(_) => vec![redis::cmd("PING")],
            Self::Cluster(_, keys) => keys.iter().map(|key| redis::cmd("EXISTS").arg(*key).clone()).collect(),
        };
        self.many(commands).await?.into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Sends one command. An answer that is an error is an `Err` as well.
    pub(super) async fn one(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection, _) => connection.req_packed_command(command).await,
        };
        answer.and_then(Value::extract_error)
    }

    /// Sends several commands at once: in one pipeline to a server; side by side to the nodes of a cluster, where
    /// their keys may live apart. The outer error says that nothing was answered.
    pub(super) async fn many(&mut self, commands: Vec<Cmd>) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::Single(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command);
                }
                let answers = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await?;
                Ok(answers.into_iter().map(Value::extract_error).collect())
            }
            Self::Cluster(connection, _) => Ok(join_all(commands.iter().map(|command| {
                let mut connection = connection.clone();
                async move { connection.req_packed_command(command).await.and_then(Value::extract_error) }
            }))
            .await),
        }
    }
}

/// A key for each primary in an answer to `CLUSTER SLOTS`: ranges of first slot, last slot, primary, replicas.
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
    // There are 16,384 slots: so many keys meet every one of them, some 12 times on the average.
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

/// The outcome of an attempt, which fails when it takes too long.
pub(super) async fn in_time<Output>(
    longest: Duration,
    attempt: impl Future<Output = RedisResult<Output>>,
) -> RedisResult<Output> {
    match tokio::time::timeout(longest, attempt).await {
        Ok(outcome) => outcome,
        Err(elapsed) => Err(std::io::Error::from(elapsed).into()),
    }
}

/// What an error says of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Redis answered: the connection is fine.
    Answer,
    /// The connection is lost, or leads to a server that cannot serve now; a new one may do better.
    Lost,
}

pub(super) fn fault(error: &RedisError) -> Fault {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly};
    match error.kind() {
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly) => Fault::Lost,
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType => Fault::Answer,
        _ => Fault::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primary_is_asked_for_one_key() {
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
