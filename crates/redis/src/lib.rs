//! Redis connections with deadlines, automatic reconnects and a circuit breaker.
//!
//! - [`RedisConnection`] is for commands that a request waits for. All requests share its multiplexed
//!   connection, and every command has a deadline. While Redis is unavailable, commands fail at once.
//! - [`RedisPool`] is for commands that should not share that connection.
//! - [`RedisArguments`] reads the settings `REDIS_URL` and `REDIS_CLUSTER_URLS`.
//!
//! Both work with one server or with a Redis Cluster. The feature `testing` adds servers for tests.

mod arguments;
mod circuit_breaker;
mod config;
mod connection;
mod connection_state;
mod error;
mod metrics;
mod multiplexed;
mod pool;
mod supervisor;
#[cfg(feature = "testing")]
pub mod testing;

pub use arguments::{InconsistentUrls, RedisArguments};
pub use config::{InvalidRedisUrl, RedisConfig, RedisEndpoint, RedisUrl};
pub use connection::RedisConnection;
pub use connection_state::ConnectionState;
pub use error::CommandError;
pub use pool::RedisPool;
