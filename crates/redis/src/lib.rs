//! Redis connections with deadlines, automatic reconnects and a circuit breaker.
//!
//! - [`RedisConnection`] is one multiplexed connection to a server, or to each primary of a Redis Cluster.
//!   Every command has a deadline. While a server is unavailable, commands for it fail at once.
//! - [`RedisPool`] has connections for commands with large replies or arguments.
//! - [`describe`] says what each node is and how it is set up.
//! - [`RedisArguments`] reads the settings `REDIS_URL` and `REDIS_CLUSTER_URLS`.
//!
//! The feature `testing` adds servers for tests.

mod arguments;
mod circuit_breaker;
mod config;
mod connection;
mod connection_state;
mod error;
mod metrics;
mod node_report;
mod pool;
mod server;
mod servers;
mod slots;
mod supervisor;
#[cfg(feature = "testing")]
pub mod testing;

pub use arguments::{InconsistentUrls, RedisArguments};
pub use config::{InvalidRedisUrl, RedisConfig, RedisEndpoint, RedisUrl};
pub use connection::RedisConnection;
pub use connection_state::ConnectionState;
pub use error::CommandError;
pub use node_report::{NodeReport, describe};
pub use pool::RedisPool;
