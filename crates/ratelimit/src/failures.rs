//! When Redis began and ceased to answer with errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tells the first error from those that follow it, so that the log has a line for a change and not for every request.
///
/// A Redis that answers some requests with errors and some without, as a cluster does of which one node is full, has
/// not recovered: that it has is said after [`RECOVERED_AFTER`] without an error.
#[derive(Debug)]
pub(crate) struct Failures {
    begun: Instant,
    /// When the last error came, in milliseconds since `begun`, plus 1. 0 while there are none.
    last: AtomicU64,
}

/// How long there has to be no error.
const RECOVERED_AFTER: Duration = Duration::from_secs(5);

impl Failures {
    /// Without an error so far.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { begun: now, last: AtomicU64::new(0) }
    }

    /// Notes an error. Whether it is the first.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        self.last.swap(self.millis(now) + 1, Ordering::Relaxed) == 0
    }

    /// Notes an answer. Whether it is the first after a time without errors.
    pub(crate) fn succeeded(&self, now: impl FnOnce() -> Instant) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        if last == 0 {
            return false;
        }
        let quiet = Duration::from_millis((self.millis(now()) + 1).saturating_sub(last));
        quiet >= RECOVERED_AFTER
            && self.last.compare_exchange(last, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noted_once_however_errors_and_answers_alternate() {
        let begun = Instant::now();
        let failures = Failures::new(begun);
        let at = |millis| begun + Duration::from_millis(millis);
        assert!(!failures.succeeded(|| at(0)), "there was no error yet");
        let mut noted = 0;
        for millis in 0..10_000 {
            noted += usize::from(failures.failed(at(millis)));
            noted += usize::from(failures.succeeded(|| at(millis)));
        }
        assert_eq!(noted, 1, "the first error");
        assert!(!failures.succeeded(|| at(9_999 + 4_999)));
        assert!(failures.succeeded(|| at(9_999 + 5_000)));
        assert!(!failures.succeeded(|| at(20_000)), "once");
        assert!(failures.failed(at(20_001)), "the first of the next failure");
    }
}
