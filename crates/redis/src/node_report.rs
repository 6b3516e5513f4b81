//! What a node is and how it is set up, for checks of an installation.

use redis::{InfoDict, RedisResult, cmd};

use crate::supervisor::with_timeout;
use crate::{RedisConfig, RedisUrl};

/// A node of Redis that runs the commands of rate limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The version, such as `7.0.15`.
    pub version: String,
    /// `maxmemory` in bytes; 0 for no limit.
    pub max_memory_bytes: u64,
    /// `maxmemory-policy`.
    pub eviction_policy: String,
    /// Whether it has an append-only file.
    pub appends_to_file: bool,
    /// The time by its clock, in Unix epoch milliseconds.
    pub clock_ms: i64,
}

/// Connects to each node that is named. Returns its host and port, and what it is or why it cannot be used.
pub async fn describe(config: &RedisConfig) -> Vec<(String, RedisResult<NodeReport>)> {
    config.install_tls_provider();
    let mut nodes = Vec::new();
    for url in config.endpoint.urls() {
        nodes.push((url.address(), describe_node(config, url).await));
    }
    nodes
}

async fn describe_node(config: &RedisConfig, url: &RedisUrl) -> RedisResult<NodeReport> {
    let target = config.target(url)?;
    let mut connection = target.open().await?;
    let describe = async {
        target.probe(connection.clone()).await?;
        cmd("EVAL").arg("return 1").arg(0).query_async::<()>(&mut connection).await?;
        let info: InfoDict = cmd("INFO").query_async(&mut connection).await?;
        let (seconds, microseconds): (i64, i64) = cmd("TIME").query_async(&mut connection).await?;
        Ok(NodeReport {
            version: info.get("redis_version").unwrap_or_default(),
            max_memory_bytes: info.get("maxmemory").unwrap_or_default(),
            eviction_policy: info.get("maxmemory_policy").unwrap_or_default(),
            appends_to_file: info.get("aof_enabled") == Some(1),
            clock_ms: seconds * 1_000 + microseconds / 1_000,
        })
    };
    with_timeout(config.connect_timeout, describe).await
}
