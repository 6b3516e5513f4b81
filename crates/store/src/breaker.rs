//! A circuit breaker: after consecutive connection failures, reads fail at once until PostgreSQL responds again.
//!
//! Without it every cache miss during an outage waits for a connection up to the acquire timeout, and the requests
//! that wait take the place of those that the cache can answer. A background task tests new connections, so that no
//! request has to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection};
use tokio::time::timeout;

use crate::error::is_connection_failure;

/// Consecutive failures that open the breaker. A single one may be a failover or a restart that is over already.
const FAILURES: u32 = 3;
/// How long to wait after a failed probe before the next one.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// How long a probe may take, connecting included.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// What a probe reads: a row of each table that lookups read. Where those are locked, lookups fail as well.
const PROBE: &str = "SELECT (SELECT true FROM charts LIMIT 1), (SELECT true FROM chartset_charts LIMIT 1),
                            (SELECT true FROM chartsets LIMIT 1), (SELECT true FROM rox_files LIMIT 1)";

/// Whether reads are let through. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_open: AtomicBool,
    failures: AtomicU32,
}

/// The breaker is open.
#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL is unavailable, the next connection attempt is pending")]
pub(crate) struct BreakerOpen;

impl Breaker {
    /// Whether a read may go to PostgreSQL.
    pub(crate) fn check(&self) -> Result<(), BreakerOpen> {
        if self.state.is_open.load(Ordering::Acquire) { Err(BreakerOpen) } else { Ok(()) }
    }

    /// A read reached PostgreSQL, whatever it answered.
    pub(crate) fn succeeded(&self) {
        // As a rule a read of a value that stays in the cache of every core.
        if self.state.failures.load(Ordering::Relaxed) > 0 {
            self.state.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A read did not reach PostgreSQL. Returns whether this opened the breaker, which the caller then has to
    /// [`close`](Self::close) once PostgreSQL responds.
    #[must_use]
    pub(crate) fn failed(&self) -> bool {
        let failures = self.state.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        failures >= FAILURES && !self.state.is_open.swap(true, Ordering::AcqRel)
    }

    /// Lets reads through again.
    pub(crate) fn close(&self) {
        self.state.failures.store(0, Ordering::Relaxed);
        self.state.is_open.store(false, Ordering::Release);
    }
}

/// Probes PostgreSQL until it responds. Returns how long that took.
pub(crate) async fn wait_for_response(options: &PgConnectOptions) -> Duration {
    let start = Instant::now();
    while !matches!(timeout(PROBE_TIMEOUT, probe(options)).await, Ok(true)) {
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    start.elapsed()
}

/// Whether PostgreSQL responds on a new connection, be it with an error.
async fn probe(options: &PgConnectOptions) -> bool {
    let result = async {
        let mut connection = PgConnection::connect_with(options).await?;
        connection.execute(PROBE).await?;
        connection.close().await
    };
    !result.await.is_err_and(|error| is_connection_failure(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_consecutive_failures_only() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            assert!(!breaker.failed() && !breaker.failed());
            breaker.succeeded();
        }
        assert!(breaker.check().is_ok());
        assert_eq!([(); 4].map(|()| breaker.failed()), [false, false, true, false], "opens once");
        breaker.succeeded();
        assert!(breaker.check().is_err(), "a read that was in flight does not close it");
        breaker.close();
        assert!(breaker.check().is_ok());
        assert!(!breaker.failed(), "closing it starts the count again");
    }
}
