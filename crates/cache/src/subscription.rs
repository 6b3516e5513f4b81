//! A subscription to invalidations.

use chart_index_redis::RedisConfig;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::cluster_routing::Slot;
use redis::{Client, ConnectionAddr, ErrorKind, RedisResult, ServerErrorKind, Value, cmd};

/// A subscription, and a second connection to the same server to check that it is connected to the others: a
/// server that is cut off from its cluster or its primary still replies to a ping, but receives no messages.
pub(crate) struct Subscription {
    pub(crate) sink: PubSubSink,
    pub(crate) messages: PubSubStream,
    pub(crate) server: Server,
}

pub(crate) struct Server {
    connection: MultiplexedConnection,
    is_cluster_node: bool,
}

impl Subscription {
    /// Subscribes to a channel at the server to which its messages are published. In a cluster that is the
    /// primary of the channel's slot, so that delivery does not depend on the links between nodes.
    pub(crate) async fn open(node: &Client, config: &RedisConfig, channel: &str) -> RedisResult<Self> {
        let mut connection = node.get_multiplexed_async_connection().await?;
        let slots = cmd("CLUSTER").arg("SLOTS").query_async::<Value>(&mut connection).await;
        let is_cluster_node = slots.is_ok();
        let primary = match slots {
            Ok(slots) => primary_of(&slots, Slot::for_key(channel), node)
                .map(|(host, port)| config.client_at(&host, port))
                .ok_or_else(|| not_connected("no primary serves the slot of the channel"))??,
            Err(error) if error.is_io_error() => return Err(error),
            // Not a cluster.
            Err(_) => node.clone(),
        };
        if is_cluster_node {
            connection = primary.get_multiplexed_async_connection().await?;
        }
        let mut server = Server { connection, is_cluster_node };
        server.check().await?;
        let (mut sink, messages) = primary.get_async_pubsub().await?.split();
        sink.subscribe(channel).await?;
        Ok(Self { sink, messages, server })
    }
}

impl Server {
    /// Checks that the server is connected to the servers that messages come from.
    ///
    /// # Errors
    ///
    /// It is not connected, or does not reply. An error reply, e.g. for a command that the ACL denies, counts
    /// as passed.
    pub(crate) async fn check(&mut self) -> RedisResult<()> {
        let replication = self.info(cmd("INFO").arg("replication")).await?;
        let is_replica = has_line(&replication, "role:slave");
        if is_replica && (self.is_cluster_node || has_line(&replication, "master_link_status:down")) {
            return Err(not_connected("the server is a replica in a cluster, or has lost its primary"));
        }
        if self.is_cluster_node
            && has_line(&self.info(cmd("CLUSTER").arg("INFO")).await?, "cluster_state:fail")
        {
            return Err(not_connected("the server is not connected to the majority of its cluster"));
        }
        Ok(())
    }

    async fn info(&mut self, command: &redis::Cmd) -> RedisResult<String> {
        match command.query_async(&mut self.connection).await {
            Err(error) if !error.is_io_error() => Ok(String::new()),
            reply => reply,
        }
    }
}

fn has_line(info: &str, line: &str) -> bool {
    info.lines().any(|found| found.trim_end() == line)
}

/// The error of a server that may not receive all messages.
fn not_connected(reason: &'static str) -> redis::RedisError {
    (ErrorKind::Server(ServerErrorKind::ClusterDown), reason).into()
}

/// The address of the primary of a slot in a reply to `CLUSTER SLOTS`, a list of (first slot, last slot,
/// primary, replicas…). A node that does not know its own host leaves it empty: then it is the host that was
/// asked.
fn primary_of(slots: &Value, slot: Slot, asked: &Client) -> Option<(String, u16)> {
    let holds = |range: &&[Value]| match range {
        [Value::Int(first), Value::Int(last), ..] => {
            (*first..=*last).any(|held| u16::try_from(held).ok().and_then(Slot::new) == Some(slot))
        }
        _ => false,
    };
    let range = slots.as_sequence()?.iter().filter_map(Value::as_sequence).find(holds)?;
    let [host, Value::Int(port), ..] = range.get(2)?.as_sequence()? else { return None };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        Value::SimpleString(host) if !host.is_empty() => host.clone(),
        _ => match asked.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            _ => return None,
        },
    };
    Some((host, u16::try_from(*port).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_is_found_by_slot_range() {
        let node = |name: &str, port| Value::Array(vec![Value::BulkString(name.into()), Value::Int(port)]);
        let range = |first, last, nodes: [Value; 2]| {
            let [primary, replica] = nodes;
            Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
        };
        let slots = Value::Array(vec![
            range(0, 99, [node("a", 1), node("x", 9)]),
            range(100, 16_000, [node("", 2), node("y", 9)]),
        ]);
        let asked = Client::open("redis://asked.example:7").unwrap();
        let primary = |slot| primary_of(&slots, Slot::new(slot).unwrap(), &asked);
        assert_eq!(primary(99), Some(("a".to_owned(), 1)));
        assert_eq!(primary(100), Some(("asked.example".to_owned(), 2)), "the host that was asked");
        assert_eq!(primary(16_001), None);
    }

    #[test]
    fn info_lines_are_compared_whole() {
        let info = "# Replication\r\nrole:slave\r\nmaster_link_status:up\r\n";
        assert!(has_line(info, "role:slave") && !has_line(info, "role:sl"));
        assert!(!has_line(info, "master_link_status:down"));
    }
}
