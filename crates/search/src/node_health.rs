//! Whether a node can be searched, from its last probe and the last searches.

use std::time::Duration;

use chart_index_domain::Position;
use tokio::time::Instant;

use crate::transport::TransportError;
use crate::{Lag, SearchError};

/// After this number of consecutive failures a node is not searched until a probe succeeds.
const MAX_FAILURES: u32 = 3;
/// How long a busy node is not searched when its response has no `Retry-After`.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// A lag below this counts as none: a change takes about this long from its commit to the index.
const SHORT_LAG: Duration = Duration::from_secs(2);

/// The health of a node. A node that was never probed cannot be searched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NodeHealth {
    last_probe: Option<ProbeResult>,
    consecutive_failures: u32,
    /// The end of the last `Retry-After`.
    busy_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbeResult {
    /// The position of the index; `None` where there is none.
    pub(crate) position: Option<Position>,
    /// The lag when it was last read; `None` if it was never read. It does not grow while the changes cannot be
    /// read.
    pub(crate) lag: Option<Lag>,
    /// Whether the age of the oldest change was above the permitted lag.
    pub(crate) lags: bool,
    /// Whether the feature `containsFilter` is on; `None` where the API key may not read the features.
    pub(crate) contains_filter: Option<bool>,
}

impl ProbeResult {
    /// Why the node cannot be searched; `None` if it can.
    pub(crate) const fn problem(&self) -> Option<&'static str> {
        match self.position {
            None => Some("no index"),
            Some(_) if self.lags => Some("lags behind the catalogue"),
            Some(_) => None,
        }
    }

    /// The position of a page that was read after this probe from an index with the position `stored`, in terms
    /// of the server that the changes were read from, as long as the same server numbered the changes of the
    /// index then. `None` if the index is not the one that was probed, or has an earlier state.
    pub(crate) fn page_position(&self, stored: Position) -> Option<Position> {
        let probed = self.position?;
        let is_same_index = stored.origin == probed.origin && stored.sequence >= probed.sequence;
        let read_from = self.lag.filter(|lag| lag.position.origin == probed.origin);
        let origin = read_from.map_or(probed.origin, |lag| lag.unapplied.origin);
        is_same_index.then_some(Position { origin, sequence: stored.sequence })
    }
}

impl NodeHealth {
    /// The lag of a node that can be searched now, zero if it is short; `None` if it cannot be searched.
    pub(crate) fn usable_lag(&self, now: Instant) -> Option<Duration> {
        let probe = self.last_probe.filter(|probe| probe.problem().is_none())?;
        let is_busy = self.busy_until.is_some_and(|until| until > now);
        let is_usable = !is_busy && self.consecutive_failures < MAX_FAILURES;
        let age = probe.lag.map(|lag| lag.age()).filter(|age| *age >= SHORT_LAG);
        is_usable.then_some(age.unwrap_or_default())
    }

    /// The result of the last probe that succeeded.
    pub(crate) const fn last_probe(&self) -> Option<ProbeResult> {
        self.last_probe
    }

    /// Whether to send filters with `CONTAINS`. If the features are unknown they are sent: a node without the
    /// feature responds with an error, and the fallback engine runs the search.
    pub(crate) fn accepts_contains_filter(&self) -> bool {
        self.last_probe.is_some_and(|probe| probe.contains_filter != Some(false))
    }

    /// Whether no probe has ended yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.last_probe.is_none() && self.consecutive_failures == 0
    }

    /// Whether the API key may not read the features of the node.
    pub(crate) fn hides_features(&self) -> bool {
        self.last_probe.is_some_and(|probe| probe.contains_filter.is_none())
    }

    /// The lag at the last probe; `None` if the node is unavailable since, or has no index.
    pub(crate) fn lag(&self) -> Option<Lag> {
        let is_available = self.consecutive_failures < MAX_FAILURES;
        self.last_probe.filter(|_| is_available).and_then(|probe| probe.lag)
    }

    /// Records a probe that succeeded: earlier failures no longer count.
    pub(crate) fn record_probe(&mut self, probe: ProbeResult) {
        self.last_probe = Some(probe);
        self.consecutive_failures = 0;
    }

    /// Records a probe that failed: the node is not searched until one succeeds.
    pub(crate) fn record_probe_failure(&mut self) {
        self.consecutive_failures = MAX_FAILURES;
    }

    /// Records a search that succeeded.
    pub(crate) fn record_search(&mut self) {
        self.consecutive_failures = 0;
    }

    /// Records a search that failed. A node whose connection failed, whose index was replaced, or that failed
    /// [`MAX_FAILURES`] times in a row, is not searched until a probe succeeds; a busy node not until the end
    /// of its `Retry-After`.
    pub(crate) fn record_search_failure(&mut self, error: &SearchError, now: Instant) {
        match error {
            SearchError::ErrorResponse { status: 429 | 503, retry_after, .. } => {
                self.busy_until = Some(now + retry_after.unwrap_or(DEFAULT_RETRY_AFTER));
            }
            // The request was invalid, or the index is gone, which the next probe finds. These do not count:
            // otherwise a client could take a node out of use with a query that the node rejects.
            SearchError::ErrorResponse { status: 400..=499, .. } => {}
            SearchError::IndexReplaced => self.record_probe_failure(),
            SearchError::Unreachable { source, .. } if !is_timeout(source.as_ref()) => {
                self.record_probe_failure();
            }
            _ => self.consecutive_failures = self.consecutive_failures.saturating_add(1),
        }
    }
}

fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(TransportError::TimedOut(_)))
}

#[cfg(test)]
mod tests {
    use chart_index_domain::Origin;
    use chart_index_domain::search::UnappliedChanges;

    use super::*;

    const POSITION: Position = Position { origin: Origin(1), sequence: 7 };
    const LAG: Lag = Lag {
        position: POSITION,
        unapplied: UnappliedChanges { origin: Origin(2), oldest_ms: None, asked_ms: 10_000, count: 0 },
    };
    const HEALTHY: ProbeResult =
        ProbeResult { position: Some(POSITION), lag: Some(LAG), lags: false, contains_filter: Some(true) };

    fn error_response(status: u16, retry_after: Option<Duration>) -> SearchError {
        let (code, message) = (String::new(), String::new());
        SearchError::ErrorResponse { operation: "test", status, code, message, retry_after }
    }

    fn unreachable(error: TransportError) -> SearchError {
        SearchError::Unreachable { operation: "test", source: error.into() }
    }

    fn healthy() -> NodeHealth {
        let mut health = NodeHealth::default();
        health.record_probe(HEALTHY);
        health
    }

    #[test]
    fn node_with_a_current_index_is_usable() {
        for (probe, is_usable) in [
            (HEALTHY, true),
            (ProbeResult { position: None, ..HEALTHY }, false),
            (ProbeResult { lags: true, ..HEALTHY }, false),
            (ProbeResult { contains_filter: Some(false), ..HEALTHY }, true),
            (ProbeResult { contains_filter: None, ..HEALTHY }, true),
        ] {
            let mut health = NodeHealth::default();
            assert_eq!(health.usable_lag(Instant::now()), None);
            health.record_probe(probe);
            assert_eq!(health.usable_lag(Instant::now()).is_some(), is_usable, "{probe:?}");
        }
    }

    #[test]
    fn page_has_the_origin_of_the_server_that_was_asked() {
        let at = |origin, sequence| Position { origin: Origin(origin), sequence };
        for (probe, stored, expected) in [
            (HEALTHY, at(1, 7), Some(at(2, 7))),
            (HEALTHY, at(1, 9), Some(at(2, 9))),
            (HEALTHY, at(1, 6), None),
            (HEALTHY, at(2, 9), None),
            (ProbeResult { position: Some(at(3, 9)), ..HEALTHY }, at(3, 9), Some(at(3, 9))),
            (ProbeResult { lag: None, ..HEALTHY }, at(1, 7), Some(at(1, 7))),
        ] {
            assert_eq!(probe.page_position(stored), expected, "{stored:?} after {probe:?}");
        }
    }

    #[test]
    fn short_lag_counts_as_none() {
        for (age_ms, expected_ms) in [(0, 0), (1_999, 0), (2_000, 2_000), (7_000, 7_000)] {
            let mut health = NodeHealth::default();
            let mut lag = LAG;
            lag.unapplied.oldest_ms = Some(lag.unapplied.asked_ms - age_ms);
            health.record_probe(ProbeResult { lag: Some(lag), ..HEALTHY });
            assert_eq!(health.usable_lag(Instant::now()), Some(Duration::from_millis(expected_ms)));
        }
    }

    #[test]
    fn unknown_feature_counts_as_on() {
        for (contains_filter, accepted) in [(Some(true), true), (Some(false), false), (None, true)] {
            let mut health = NodeHealth::default();
            assert!(!health.accepts_contains_filter() && health.is_unknown());
            health.record_probe(ProbeResult { contains_filter, ..HEALTHY });
            assert_eq!(health.accepts_contains_filter(), accepted, "{contains_filter:?}");
            assert!(!health.is_unknown());
        }
        let mut health = NodeHealth::default();
        health.record_probe_failure();
        assert!(!health.is_unknown());
    }

    #[test]
    fn failures_make_a_node_unusable_until_the_next_probe() {
        let now = Instant::now();
        let timeout = || unreachable(TransportError::TimedOut(Duration::ZERO));
        let mut health = healthy();
        for _ in 0..5 {
            health.record_search_failure(&timeout(), now);
            health.record_search_failure(&error_response(500, None), now);
            health.record_search();
        }
        assert!(health.usable_lag(now).is_some());
        for is_usable in [true, true, false] {
            health.record_search_failure(&timeout(), now);
            assert_eq!(health.usable_lag(now).is_some(), is_usable);
        }
        health.record_probe(HEALTHY);
        assert!(health.usable_lag(now).is_some());
        health.record_search_failure(&unreachable(TransportError::Disconnected("reset".into())), now);
        assert_eq!(health.usable_lag(now), None);
    }

    #[test]
    fn retry_after_outlasts_a_successful_probe() {
        let now = Instant::now();
        for (retry_after, seconds) in [(Some(Duration::from_secs(10)), 10), (None, 1)] {
            let mut health = healthy();
            health.record_search_failure(&error_response(503, retry_after), now);
            health.record_probe(HEALTHY);
            assert_eq!(health.usable_lag(now + Duration::from_millis(seconds * 1_000 - 1)), None);
            assert!(health.usable_lag(now + Duration::from_secs(seconds)).is_some());
        }
    }

    #[test]
    fn rejected_queries_do_not_count_as_failures() {
        let mut health = healthy();
        (0..10).for_each(|_| health.record_search_failure(&error_response(400, None), Instant::now()));
        assert!(health.usable_lag(Instant::now()).is_some());
    }
}
