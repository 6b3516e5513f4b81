//! A streaming standby that serves reads, and when it may.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chart_index_instrumentation::metrics;

use crate::StoreConfig;
use crate::connection::metrics::PoolName;
use crate::connection::pooled_connection::PooledConnection;
use crate::connection::server::{ReadLength, Server};
use crate::connection::server_identity::{ExpectedServer, ServerPosition};
use crate::error::{is_connection_failure, is_plan_error, is_transaction_conflict};

/// How long after a poll of the primary a standby may be read that has all changes which that poll found. What
/// such a read misses is cached for 3 seconds at most, so that it is in force within five (docs/api.md, "ROX
/// file").
const MAX_LAG: Duration = Duration::from_secs(2);
/// The same while the primary is unavailable, as for cached responses.
const MAX_LAG_IN_OUTAGE: Duration = Duration::from_hours(1);

/// A streaming standby of the server of a store. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Standby {
    requests: Server,
    monitoring: Server,
    expected: Arc<ExpectedServer>,
    state: Arc<State>,
}

/// Times in milliseconds after the start; 0 is the past.
#[derive(Debug)]
struct State {
    start: Instant,
    /// Until when it is current.
    current_until: AtomicU64,
    /// Until when it may replace an unavailable primary.
    replaces_until: AtomicU64,
    /// When the last poll of the primary began whose changes it has.
    caught_up_at: AtomicU64,
}

impl Standby {
    pub(crate) fn new(requests: &StoreConfig, monitoring: &StoreConfig) -> Self {
        let expected = Arc::<ExpectedServer>::default();
        let state = Arc::new(State {
            start: Instant::now(),
            current_until: AtomicU64::new(0),
            replaces_until: AtomicU64::new(0),
            caught_up_at: AtomicU64::new(0),
        });
        metrics().observe(&state, |state, metrics| {
            metrics.chart_index_postgresql_standby_in_use.set([], state.is_current());
            metrics.chart_index_postgresql_standby_lag_seconds.set([], state.lag());
        });
        Self {
            requests: Server::new(requests, PoolName::Standby, Some(Arc::clone(&expected))),
            monitoring: Server::new(monitoring, PoolName::StandbyMonitoring, None),
            expected,
            state,
        }
    }

    /// Whether it has every change of the primary of two seconds ago.
    pub(crate) fn is_current(&self) -> bool {
        self.state.is_current()
    }

    /// Whether it has what was last known of the primary.
    pub(crate) fn may_replace_primary(&self) -> bool {
        self.state.now() < self.state.replaces_until.load(Ordering::Acquire)
    }

    /// Makes an attempt of a read. `None` after an error that the primary may not have. If the standby was not
    /// reached, it is not used until the next poll of it.
    pub(crate) async fn read<T, R>(
        &self,
        length: ReadLength,
        work: impl FnOnce(PooledConnection) -> R,
    ) -> Option<Result<T, sqlx::Error>>
    where
        R: Future<Output = Result<T, sqlx::Error>>,
    {
        let result = self.requests.read(length, work).await;
        let Err(error) = &result else { return Some(result) };
        let is_lost = self.requests.retire_connections(error) || is_connection_failure(error);
        if is_lost && !is_plan_error(error) {
            self.suspend();
        }
        // A read that conflicts with the replay is cancelled like a transaction.
        if is_lost || is_transaction_conflict(error) {
            tracing::debug!(%error, "the standby failed");
            return None;
        }
        Some(result)
    }

    /// The connections for polls.
    pub(crate) const fn monitoring(&self) -> &Server {
        &self.monitoring
    }

    /// Records that the server which was just polled has all changes that a poll of the primary found which
    /// began then. If it is another one than before, it takes its place only if it may be read: reads for which
    /// the former is current must not reach it otherwise.
    pub(crate) fn record_caught_up(&self, began: Instant, polled: ServerPosition, may_be_read: bool) {
        if self.expected.is_other(polled) && !may_be_read {
            return;
        }
        let began = self.state.millis(began);
        if self.expected.set(polled) {
            self.requests.health.record_failure();
            // What another server had says nothing about this one.
            self.state.caught_up_at.store(began, Ordering::Relaxed);
        } else {
            self.state.caught_up_at.fetch_max(began, Ordering::Relaxed);
        }
    }

    /// Whether a standby is current that has all changes which a poll of the primary found that began then.
    pub(crate) fn is_recent(began: Instant) -> bool {
        began.elapsed() < MAX_LAG
    }

    /// Lets reads use it while it is current. Returns whether it is.
    pub(crate) fn resume(&self) -> bool {
        self.state.allow(&self.state.current_until, MAX_LAG);
        self.is_current()
    }

    /// Lets it replace an unavailable primary, or not.
    pub(crate) fn set_replaces_primary(&self, replaces: bool) {
        if replaces {
            self.state.allow(&self.state.replaces_until, MAX_LAG_IN_OUTAGE);
        } else {
            self.state.replaces_until.store(0, Ordering::Release);
        }
    }

    /// Keeps all reads from it until it is polled again, over another connection: its name may lead to another
    /// standby, which is current.
    pub(crate) fn suspend(&self) {
        self.state.current_until.store(0, Ordering::Release);
        self.set_replaces_primary(false);
        self.monitoring.health.record_failure();
    }

    pub(crate) async fn close(&self) {
        tokio::join!(self.requests.pool().close(), self.monitoring.pool().close());
    }
}

impl State {
    fn is_current(&self) -> bool {
        self.now() < self.current_until.load(Ordering::Acquire)
    }

    fn allow(&self, until: &AtomicU64, lag: Duration) {
        let lag = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        until.store(self.caught_up_at.load(Ordering::Relaxed).saturating_add(lag), Ordering::Release);
    }

    /// The time since it was last shown to have what the primary had.
    fn lag(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.caught_up_at.load(Ordering::Relaxed)))
    }

    fn now(&self) -> u64 {
        self.millis(Instant::now())
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn standby_is_as_old_as_its_own_poll() {
        let config = StoreConfig::new("postgres://localhost/none".parse().unwrap());
        let now = Instant::now();
        let start = now.checked_sub(2 * MAX_LAG).unwrap();
        let state = State {
            start,
            current_until: AtomicU64::new(0),
            replaces_until: AtomicU64::new(0),
            caught_up_at: AtomicU64::new(0),
        };
        let standby = Standby { state: Arc::new(state), ..Standby::new(&config, &config) };
        let server = |server| ServerPosition { server, wal: 10 };
        standby.record_caught_up(now, server(1), true);
        assert!(standby.resume());
        standby.record_caught_up(start, server(1), false);
        assert!(standby.resume(), "it has what it had");
        standby.record_caught_up(start, server(2), false);
        assert!(standby.resume() && standby.expected.is_other(server(2)), "another one that may not be read");
        standby.record_caught_up(start, server(2), true);
        assert!(!standby.resume() && standby.expected.is_other(server(1)));
    }
}
