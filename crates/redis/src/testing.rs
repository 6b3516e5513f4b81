//! Redis servers and clusters for tests: started on free ports, and killed when dropped.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::unwrap_used,
    reason = "a test fails where its server does not start"
)]

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use chart_index_tests::{PrivateRedis, PrivateRedisCluster};
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};

use crate::{ConnectionState, RedisConfig, RedisConnection, RedisEndpoint};

/// A `redis-server` process of the test's own.
#[derive(Debug)]
pub struct RedisServer(PrivateRedis);

impl RedisServer {
    /// Starts a server with these arguments added to the usual ones, and waits until it accepts connections.
    pub fn start(arguments: &[&str]) -> Self {
        Self(PrivateRedis::start(arguments))
    }

    /// A configuration with the default timeouts.
    pub fn config(&self) -> RedisConfig {
        RedisConfig::new(RedisEndpoint::Single(self.url().parse().unwrap()))
    }

    /// A configuration for tests of what Redis replies, which a slow machine must not fail.
    pub fn patient_config(&self) -> RedisConfig {
        patient(self.config())
    }

    /// A plain connection for the test itself.
    pub async fn connection(&self) -> MultiplexedConnection {
        redis::Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }
}

impl Deref for RedisServer {
    type Target = PrivateRedis;

    fn deref(&self) -> &PrivateRedis {
        &self.0
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut PrivateRedis {
        &mut self.0
    }
}

/// A Redis Cluster of three primaries.
#[derive(Debug)]
pub struct RedisCluster {
    /// The three primaries, each with a third of the slots.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, and waits until each of them reports that the cluster is complete.
    pub fn start() -> Self {
        Self { nodes: PrivateRedisCluster::start().nodes.into_iter().map(RedisServer).collect() }
    }

    /// A configuration with the default timeouts.
    pub fn config(&self) -> RedisConfig {
        let urls = self.nodes.iter().map(|node| node.url().parse().unwrap()).collect();
        RedisConfig::new(RedisEndpoint::Cluster(urls))
    }

    /// A configuration for tests of what Redis replies, which a slow machine must not fail.
    pub fn patient_config(&self) -> RedisConfig {
        patient(self.config())
    }
}

/// Lets requests wait for up to 20 s.
pub fn patient(config: RedisConfig) -> RedisConfig {
    RedisConfig { request_timeout: Duration::from_secs(20), ..config }
}

/// Waits until a connection is in this state; fails after 20 s.
pub async fn wait_for_state(connection: &RedisConnection, state: ConnectionState) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while connection.state() != state {
        assert!(Instant::now() < deadline, "the connection is {:?}, not {state:?}", connection.state());
        sleep(Duration::from_millis(1)).await;
    }
}
