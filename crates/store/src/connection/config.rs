//! Configuration: the database, its connections and timeouts.

use std::time::Duration;

use crate::DatabaseUrl;

/// The configuration of a [`Store`](crate::Store).
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Address of the database.
    pub url: DatabaseUrl,
    /// Maximum number of open connections.
    pub max_connections: u32,
    /// Timeout for getting a connection, including opening a new one.
    pub acquire_timeout: Duration,
    /// Timeout of a lookup by key. After it the connection counts as half-open and is closed, and the lookup is
    /// retried once: a caller waits at most twice this and twice `acquire_timeout`. It is shorter than
    /// `acquire_timeout`, so that callers that wait for the connection get one in time.
    pub lookup_timeout: Duration,
    /// `statement_timeout` of PostgreSQL; zero for none. Migrations have none.
    pub statement_timeout: Duration,
}

impl StoreConfig {
    /// The defaults for a server: 16 connections, 1.5 seconds to get one, 1 second per lookup, 5 seconds per
    /// statement.
    #[must_use]
    pub const fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            max_connections: 16,
            acquire_timeout: Duration::from_millis(1_500),
            lookup_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
        }
    }
}
