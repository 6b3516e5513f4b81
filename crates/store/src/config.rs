//! Where the database is and how patient to be with it.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::DatabaseUrl;

/// How to reach PostgreSQL.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The database.
    pub url: DatabaseUrl,
    /// The most connections at a time.
    pub max_connections: u32,
    /// How long a caller waits for a connection, new ones included.
    pub acquire_timeout: Duration,
    /// How long a lookup by key may take before its connection is taken for silent and closed. The lookup is then
    /// repeated once, so a caller waits at most twice this and twice `acquire_timeout`. Shorter than
    /// `acquire_timeout`, so that those who wait for a connection still get one after that.
    pub lookup_timeout: Duration,
    /// How long one statement may run before PostgreSQL ends it; zero for as long as it takes. Migrations are
    /// never ended.
    pub statement_timeout: Duration,
    /// The most searches in flight in the PostgreSQL engine, and never more than half of the connections.
    pub max_searches: NonZeroUsize,
}

impl StoreConfig {
    /// The values for a server that answers requests: 16 connections, 1.5 seconds to get one, 1 second a lookup, 5
    /// seconds a statement, 4 searches.
    #[must_use]
    pub const fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            max_connections: 16,
            acquire_timeout: Duration::from_millis(1_500),
            lookup_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
            max_searches: NonZeroUsize::MIN.saturating_add(3),
        }
    }
}
