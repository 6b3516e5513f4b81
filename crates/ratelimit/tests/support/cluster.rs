//! A Redis Cluster of three primaries.

use chart_index_ratelimit::redis_link::{RedisEndpoint, RedisLinkConfig};
use chart_index_tests::PrivateRedisCluster;

use super::server::RedisServer;

/// Three nodes that share the keys.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, and waits until each of them knows that the cluster is complete.
    pub(crate) fn start() -> Self {
        Self { nodes: PrivateRedisCluster::start().nodes.into_iter().map(RedisServer::from).collect() }
    }

    /// The link of a replica.
    pub(crate) fn link(&self) -> RedisLinkConfig {
        let urls = self.nodes.iter().map(|node| node.url().parse().unwrap()).collect();
        RedisLinkConfig::new(RedisEndpoint::Cluster(urls))
    }
}
