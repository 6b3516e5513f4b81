//! Detects half-open connections and keeps the pool from reusing them.
//!
//! On a half-open connection nothing arrives any more and nothing closes it: a firewall or NAT gateway dropped
//! its state, or the server vanished without a FIN or RST. sqlx sets no TCP keepalive, so only a timeout finds
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

/// Idle time after which a connection is pinged before it is used. A ping before every use would double the
/// round trips of a lookup.
const PING_AFTER_IDLE: Duration = Duration::from_secs(5);
/// Timeout of a ping.
const PING_TIMEOUT: Duration = Duration::from_millis(500);

/// Remembers when a connection last failed. Connections that were idle at that time are closed instead of
/// reused: the same cause has usually broken all of them, and a new connection costs less than a timeout.
///
/// Also remembers when PostgreSQL last rejected a prepared statement as invalid. Connections that were open at
/// that time are closed instead of reused: they may have prepared the same statement. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHealth {
    start: std::time::Instant,
    last_failure_ms: Arc<AtomicU64>,
    last_plan_error_ms: Arc<AtomicU64>,
}

impl Default for ConnectionHealth {
    fn default() -> Self {
        Self {
            start: std::time::Instant::now(),
            last_failure_ms: Arc::default(),
            last_plan_error_ms: Arc::default(),
        }
    }
}

impl ConnectionHealth {
    /// Records that a connection is lost or half-open.
    pub(crate) fn record_failure(&self) {
        self.last_failure_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
    }

    /// Records that a prepared statement of a connection is invalid.
    pub(crate) fn record_plan_error(&self) {
        self.last_plan_error_ms.fetch_max(self.now_ms(), Ordering::Relaxed);
    }

    /// Decides whether an idle connection, which was opened and last acquired this long ago, may be reused.
    /// Pings it if necessary, for up to [`PING_TIMEOUT`].
    pub(crate) async fn check_reuse(
        &self,
        connection: &mut PgConnection,
        age: Duration,
        last_used: Duration,
    ) -> bool {
        let failed_since = self.was_before(&self.last_failure_ms, last_used);
        if failed_since || self.was_before(&self.last_plan_error_ms, age) {
            return false;
        }
        if last_used < PING_AFTER_IDLE || ping(connection).await {
            return true;
        }
        self.record_failure();
        false
    }

    /// Whether the time `ago` was not later than that in `last_ms`.
    fn was_before(&self, last_ms: &AtomicU64, ago: Duration) -> bool {
        let ago_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        self.now_ms().saturating_sub(ago_ms) <= last_ms.load(Ordering::Relaxed)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Pings a connection. Returns whether it responds within [`PING_TIMEOUT`].
pub(crate) async fn ping(connection: &mut PgConnection) -> bool {
    matches!(timeout(PING_TIMEOUT, connection.ping()).await, Ok(Ok(())))
}
