//! One `redis-server` process, and the links to it.

use std::ops::{Deref, DerefMut};

use chart_index_ratelimit::redis_link::{RedisEndpoint, RedisLinkConfig};
use chart_index_tests::PrivateRedis;
use redis::aio::MultiplexedConnection;

/// A server that ends with this value.
pub(crate) struct RedisServer(PrivateRedis);

impl RedisServer {
    /// Starts a server with these arguments besides the usual ones, and waits until it accepts connections.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self(PrivateRedis::start(arguments))
    }

    /// The link of a replica, with its ordinary time-outs.
    pub(crate) fn link(&self) -> RedisLinkConfig {
        RedisLinkConfig::new(RedisEndpoint::Single(self.url().parse().unwrap()))
    }

    /// A connection for the test itself.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        redis::Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }
}

impl From<PrivateRedis> for RedisServer {
    fn from(server: PrivateRedis) -> Self {
        Self(server)
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
