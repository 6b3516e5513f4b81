//! Whether a node may be asked: what was last heard of it, and how the last searches went.

use std::time::Duration;

use chart_index_domain::search::Checkpoint;
use tokio::time::Instant;

use crate::http::Failure;
use crate::{FORMAT, IndexState, SearchError};

/// After so many failures in a row a node is left alone until it was heard of again.
const FAILURES: u32 = 3;
/// How long a node is left alone that says it is busy, and not for how long.
const BUSY: Duration = Duration::from_secs(1);

/// What is known of a node. Until something is heard of it, it is not asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    report: Option<Report>,
    failures: u32,
    /// A search that was refused said to come back then.
    busy_until: Option<Instant>,
}

/// What a node said of itself when it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) state: Option<IndexState>,
    /// The oldest change that it does not hold was made too long ago.
    pub(crate) lags: bool,
    /// Whether it looks for parts of text; `None` where the key may not read that.
    pub(crate) contains: Option<bool>,
}

impl Report {
    /// Why the node cannot be asked; `None` if it can.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        match self.state {
            None => Some("it has no index"),
            Some(IndexState { format, .. }) if format != FORMAT => Some("its index has another format"),
            Some(_) if self.lags => Some("it lags behind the catalogue"),
            Some(_) => None,
        }
    }
}

impl Standing {
    /// Which changes the node holds, if it may be asked now.
    pub(crate) fn usable(&self, now: Instant) -> Option<Checkpoint> {
        let report = self.report.filter(|report| report.fault().is_none())?;
        let rested = self.busy_until.is_none_or(|until| until <= now);
        let state = report.state.filter(|_| rested && self.failures < FAILURES)?;
        Some(state.checkpoint)
    }

    /// Whether it may be asked for parts of text. Where that is not known it is asked: a node without the feature
    /// refuses the search, and the fallback answers it.
    pub(crate) fn contains(&self) -> bool {
        self.report.is_some_and(|report| report.contains != Some(false))
    }

    /// Whether nothing was ever heard of the node, good or bad.
    pub(crate) fn is_new(&self) -> bool {
        self.report.is_none() && self.failures == 0
    }

    /// Whether the last report said that its features cannot be read.
    pub(crate) fn hides_features(&self) -> bool {
        self.report.is_some_and(|report| report.contains.is_none())
    }

    /// Whether it lagged when that was last known.
    pub(crate) fn lags(&self) -> bool {
        self.report.is_some_and(|report| report.lags)
    }

    /// The node answered when it was asked how it is: what went wrong before is over.
    pub(crate) fn heard(&mut self, report: Report) {
        self.report = Some(report);
        self.failures = 0;
    }

    /// The node did not answer when it was asked how it is.
    pub(crate) fn silent(&mut self) {
        self.failures = FAILURES;
    }

    /// A search went well.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A search failed.
    pub(crate) fn failed(&mut self, error: &SearchError, now: Instant) {
        match error {
            SearchError::Refused { status: 429 | 503, retry_after, .. } => {
                self.busy_until = Some(now + retry_after.unwrap_or(BUSY));
            }
            // The request was wrong, or the index is gone, which the next report tells. A visitor must not be able to
            // take a node from everybody with a query that it does not like.
            SearchError::Refused { status: 400..=499, .. } => {}
            SearchError::Unreachable { source, .. } if !is_time_out(source.as_ref()) => self.silent(),
            _ => self.failures = self.failures.saturating_add(1),
        }
    }
}

fn is_time_out(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(Failure::TimedOut(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: IndexState = IndexState { checkpoint: Checkpoint(7), history: None, format: FORMAT };
    const GOOD: Report = Report { state: Some(STATE), lags: false, contains: Some(true) };

    fn refused(status: u16, retry_after: Option<Duration>) -> SearchError {
        let (code, message) = (String::new(), String::new());
        SearchError::Refused { operation: "test", status, code, message, retry_after }
    }

    fn unreachable(failure: Failure) -> SearchError {
        SearchError::Unreachable { operation: "test", source: failure.into() }
    }

    fn heard() -> Standing {
        let mut standing = Standing::default();
        standing.heard(GOOD);
        standing
    }

    #[test]
    fn a_node_is_asked_when_its_index_is_there_current_and_of_this_format() {
        let other_format = IndexState { format: FORMAT + 1, ..STATE };
        for (report, usable) in [
            (GOOD, true),
            (Report { state: None, ..GOOD }, false),
            (Report { state: Some(other_format), ..GOOD }, false),
            (Report { lags: true, ..GOOD }, false),
            (Report { contains: Some(false), ..GOOD }, true),
            (Report { contains: None, ..GOOD }, true),
        ] {
            let mut standing = Standing::default();
            assert_eq!(standing.usable(Instant::now()), None);
            standing.heard(report);
            assert_eq!(standing.usable(Instant::now()).is_some(), usable, "{report:?}");
        }
    }

    #[test]
    fn a_feature_that_cannot_be_read_may_be_asked_for() {
        for (contains, asked) in [(Some(true), true), (Some(false), false), (None, true)] {
            let mut standing = Standing::default();
            assert!(!standing.contains() && standing.is_new());
            standing.heard(Report { contains, ..GOOD });
            assert_eq!(standing.contains(), asked, "{contains:?}");
            assert!(!standing.is_new());
        }
        let mut standing = Standing::default();
        standing.silent();
        assert!(!standing.is_new());
    }

    #[test]
    fn three_failures_in_a_row_or_a_broken_connection_end_the_asking_until_the_node_is_heard_of() {
        let now = Instant::now();
        let time_out = || unreachable(Failure::TimedOut(Duration::ZERO));
        let mut standing = heard();
        for _ in 0..5 {
            standing.failed(&time_out(), now);
            standing.failed(&refused(500, None), now);
            standing.succeeded();
        }
        assert!(standing.usable(now).is_some());
        for usable in [true, true, false] {
            standing.failed(&time_out(), now);
            assert_eq!(standing.usable(now).is_some(), usable);
        }
        standing.heard(GOOD);
        assert!(standing.usable(now).is_some());
        standing.failed(&unreachable(Failure::NoAnswer("reset".into())), now);
        assert_eq!(standing.usable(now), None);
    }

    #[test]
    fn a_busy_node_is_left_alone_for_as_long_as_it_says_even_when_it_is_heard_of() {
        let now = Instant::now();
        for (retry_after, rest) in [(Some(Duration::from_secs(10)), 10), (None, 1)] {
            let mut standing = heard();
            standing.failed(&refused(503, retry_after), now);
            standing.heard(GOOD);
            assert_eq!(standing.usable(now + Duration::from_millis(rest * 1_000 - 1)), None);
            assert!(standing.usable(now + Duration::from_secs(rest)).is_some());
        }
    }

    #[test]
    fn a_query_that_a_node_refuses_is_not_held_against_it() {
        let mut standing = heard();
        (0..10).for_each(|_| standing.failed(&refused(400, None), Instant::now()));
        assert!(standing.usable(Instant::now()).is_some());
    }
}
