//! A circuit breaker: after consecutive connection failures, reads fail at once until PostgreSQL responds
//! again.
//!
//! Otherwise cache misses would wait for connections, and use up the requests in flight that hits need. A
//! background task probes with new connections; libraries for circuit breakers probe with requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor};
use tokio::time::timeout;

use crate::connection::connection_pool::connect;
use crate::error::is_connection_failure;

/// Consecutive failures that open the breaker. A single one may be a failover or a restart that is over
/// already.
const FAILURES: u32 = 3;
/// Pause after a failed probe.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout of a probe, including connecting.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Reads a row of each table that lookups read. While one of them is locked, lookups fail.
const PROBE: &str = "SELECT (SELECT true FROM charts LIMIT 1), (SELECT true FROM chartset_charts LIMIT 1),
                            (SELECT true FROM chartsets LIMIT 1), (SELECT true FROM rox_files LIMIT 1)";

/// Whether reads may use PostgreSQL. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct CircuitBreaker {
    state: Arc<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    is_open: AtomicBool,
    failures: AtomicU32,
}

/// The breaker is open.
#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL is unavailable (circuit breaker open)")]
pub(crate) struct CircuitBreakerOpen;

impl CircuitBreaker {
    /// Fails while the breaker is open.
    pub(crate) fn check(&self) -> Result<(), CircuitBreakerOpen> {
        if self.state.is_open.load(Ordering::Acquire) { Err(CircuitBreakerOpen) } else { Ok(()) }
    }

    /// Records that a read reached PostgreSQL, even if it returned an error.
    pub(crate) fn record_success(&self) {
        // Usually only a load, so that the value stays in the cache of every core.
        if self.state.failures.load(Ordering::Relaxed) > 0 {
            self.state.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records that a read did not reach PostgreSQL. Returns whether this opened the breaker; the caller must
    /// then [`close`](Self::close) it once PostgreSQL responds.
    #[must_use]
    pub(crate) fn record_failure(&self) -> bool {
        let failures = self.state.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        failures >= FAILURES && !self.state.is_open.swap(true, Ordering::AcqRel)
    }

    /// Closes the breaker.
    pub(crate) fn close(&self) {
        self.state.failures.store(0, Ordering::Relaxed);
        self.state.is_open.store(false, Ordering::Release);
    }
}

/// Probes PostgreSQL until it responds. Returns the time until then.
pub(crate) async fn wait_for_response(options: &PgConnectOptions) -> Duration {
    let start = Instant::now();
    while !matches!(timeout(PROBE_TIMEOUT, probe(options)).await, Ok(true)) {
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    start.elapsed()
}

/// Reads on a new connection. Returns whether PostgreSQL permits the login, and then responds, even with an
/// error.
async fn probe(options: &PgConnectOptions) -> bool {
    let Ok(mut connection) = connect(options).await else { return false };
    let result = async {
        connection.execute(PROBE).await?;
        connection.close().await
    };
    !result.await.is_err_and(|error| is_connection_failure(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_consecutive_failures_open_it() {
        let breaker = CircuitBreaker::default();
        for _ in 0..10 {
            assert!(!breaker.record_failure() && !breaker.record_failure());
            breaker.record_success();
        }
        assert!(breaker.check().is_ok());
        assert_eq!([(); 4].map(|()| breaker.record_failure()), [false, false, true, false], "opens once");
        breaker.record_success();
        assert!(breaker.check().is_err(), "a late success does not close it");
        breaker.close();
        assert!(breaker.check().is_ok());
        assert!(!breaker.record_failure(), "closing it resets the count");
    }
}
