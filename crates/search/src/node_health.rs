//! Whether a node can be searched, from its last probe and the last searches.

use std::time::Duration;

use chart_index_domain::search::{Checkpoint, UnappliedChanges};
use tokio::time::Instant;

use crate::transport::TransportError;
use crate::{FORMAT, IndexState, SearchError};

/// After this number of consecutive failures a node is not searched until a probe succeeds.
const MAX_FAILURES: u32 = 3;
/// How long a busy node is not searched when its response has no `Retry-After`.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

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
    pub(crate) state: Option<IndexState>,
    /// The changes that the index lacks; `None` if they were never read.
    pub(crate) unapplied: Option<UnappliedChanges>,
    /// Whether the oldest change that the node has not applied is older than the permitted lag.
    pub(crate) lags: bool,
    /// Whether the feature `containsFilter` is on; `None` where the API key may not read the features.
    pub(crate) contains_filter: Option<bool>,
}

impl ProbeResult {
    /// Why the node cannot be searched; `None` if it can.
    pub(crate) const fn problem(&self) -> Option<&'static str> {
        match self.state {
            None => Some("no index"),
            Some(IndexState { format, .. }) if format != FORMAT => Some("index of another format"),
            Some(_) if self.lags => Some("lags behind the catalogue"),
            Some(_) => None,
        }
    }
}

impl NodeHealth {
    /// The checkpoint of the index, if the node can be searched now.
    pub(crate) fn usable_checkpoint(&self, now: Instant) -> Option<Checkpoint> {
        let probe = self.last_probe.filter(|probe| probe.problem().is_none())?;
        let is_busy = self.busy_until.is_some_and(|until| until > now);
        let state = probe.state.filter(|_| !is_busy && self.consecutive_failures < MAX_FAILURES)?;
        Some(state.checkpoint)
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

    /// Whether the node lagged at the last probe.
    pub(crate) fn lags(&self) -> bool {
        self.last_probe.is_some_and(|probe| probe.lags)
    }

    /// The changes that the index lacked at the last probe; `None` if the node is unavailable since, or has no
    /// index.
    pub(crate) fn unapplied(&self) -> Option<UnappliedChanges> {
        let is_available = self.consecutive_failures < MAX_FAILURES;
        self.last_probe.filter(|_| is_available).and_then(|probe| probe.unapplied)
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

    /// Records a search that failed. A node whose connection failed, or that failed [`MAX_FAILURES`] times in a
    /// row, is not searched until a probe succeeds; a busy node not until the end of its `Retry-After`.
    pub(crate) fn record_search_failure(&mut self, error: &SearchError, now: Instant) {
        match error {
            SearchError::ErrorResponse { status: 429 | 503, retry_after, .. } => {
                self.busy_until = Some(now + retry_after.unwrap_or(DEFAULT_RETRY_AFTER));
            }
            // The request was invalid, or the index is gone, which the next probe finds. These do not count:
            // otherwise a client could take a node out of use with a query that the node rejects.
            SearchError::ErrorResponse { status: 400..=499, .. } => {}
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
    use super::*;

    const STATE: IndexState = IndexState { checkpoint: Checkpoint(7), history: None, format: FORMAT };
    const HEALTHY: ProbeResult = ProbeResult {
        state: Some(STATE),
        unapplied: Some(UnappliedChanges { oldest_ms: None, count: 0 }),
        lags: false,
        contains_filter: Some(true),
    };

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
    fn node_with_a_current_index_of_this_format_is_usable() {
        let other_format = IndexState { format: FORMAT + 1, ..STATE };
        for (probe, is_usable) in [
            (HEALTHY, true),
            (ProbeResult { state: None, ..HEALTHY }, false),
            (ProbeResult { state: Some(other_format), ..HEALTHY }, false),
            (ProbeResult { lags: true, ..HEALTHY }, false),
            (ProbeResult { contains_filter: Some(false), ..HEALTHY }, true),
            (ProbeResult { contains_filter: None, ..HEALTHY }, true),
        ] {
            let mut health = NodeHealth::default();
            assert_eq!(health.usable_checkpoint(Instant::now()), None);
            health.record_probe(probe);
            assert_eq!(health.usable_checkpoint(Instant::now()).is_some(), is_usable, "{probe:?}");
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
        assert!(health.usable_checkpoint(now).is_some());
        for is_usable in [true, true, false] {
            health.record_search_failure(&timeout(), now);
            assert_eq!(health.usable_checkpoint(now).is_some(), is_usable);
        }
        health.record_probe(HEALTHY);
        assert!(health.usable_checkpoint(now).is_some());
        health.record_search_failure(&unreachable(TransportError::Disconnected("reset".into())), now);
        assert_eq!(health.usable_checkpoint(now), None);
    }

    #[test]
    fn retry_after_outlasts_a_successful_probe() {
        let now = Instant::now();
        for (retry_after, seconds) in [(Some(Duration::from_secs(10)), 10), (None, 1)] {
            let mut health = healthy();
            health.record_search_failure(&error_response(503, retry_after), now);
            health.record_probe(HEALTHY);
            assert_eq!(health.usable_checkpoint(now + Duration::from_millis(seconds * 1_000 - 1)), None);
            assert!(health.usable_checkpoint(now + Duration::from_secs(seconds)).is_some());
        }
    }

    #[test]
    fn rejected_queries_do_not_count_as_failures() {
        let mut health = healthy();
        (0..10).for_each(|_| health.record_search_failure(&error_response(400, None), Instant::now()));
        assert!(health.usable_checkpoint(Instant::now()).is_some());
    }
}
