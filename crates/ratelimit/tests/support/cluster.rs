//! A Redis Cluster of three primaries.

use std::process::{Command, Stdio};

use chart_index_ratelimit::redis_link::{RedisEndpoint, RedisLinkConfig};

use super::server::RedisServer;

/// Three nodes that share the keys.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, and waits until each of them knows that the cluster is complete.
    pub(crate) async fn start() -> Self {
        let arguments = ["--cluster-enabled", "yes", "--appendonly", "yes", "--appendfsync", "no"];
        let nodes: Vec<_> = (0..3).map(|_| RedisServer::start(&arguments)).collect();
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)))
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(created.success());
        let cluster = Self { nodes };
        for node in &cluster.nodes {
            let mut connection = node.connection().await;
            loop {
                let info: String =
                    redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await.unwrap();
                if info.contains("cluster_state:ok") {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        cluster
    }

    /// The link of a replica.
    pub(crate) fn link(&self) -> RedisLinkConfig {
        let urls = self.nodes.iter().map(|node| node.url().parse().unwrap()).collect();
        RedisLinkConfig::new(RedisEndpoint::Cluster(urls))
    }
}
