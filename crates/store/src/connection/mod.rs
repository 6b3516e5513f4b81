//! Connections to PostgreSQL: settings, the pool, servers and their standby, locks of processes.

pub(crate) mod arguments;
pub(crate) mod circuit_breaker;
pub(crate) mod config;
pub(crate) mod connection_health;
pub(crate) mod connection_pool;
pub(crate) mod database_locale;
pub(crate) mod database_url;
pub(crate) mod metrics;
pub(crate) mod pooled_connection;
pub(crate) mod process_locks;
pub(crate) mod removal_lock;
pub(crate) mod server;
pub(crate) mod server_identity;
pub(crate) mod server_report;
pub(crate) mod standby;
pub(crate) mod statements;
pub(crate) mod store;
