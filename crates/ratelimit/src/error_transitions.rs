//! Detects when Redis starts and stops to reply with errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Distinguishes the first error from those that follow, to log transitions instead of every error.
///
/// A Redis that fails some commands only, such as a cluster with one full node, has not recovered. It has after
/// [`RECOVERED_AFTER`] without an error.
#[derive(Debug)]
pub(crate) struct ErrorTransitions {
    created_at: Instant,
    /// The time of the last error in milliseconds since `created_at`, plus 1. 0 if there is none.
    last_error: AtomicU64,
}

/// The time without errors after which Redis has recovered.
const RECOVERED_AFTER: Duration = Duration::from_secs(5);

impl ErrorTransitions {
    /// No errors so far.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { created_at: now, last_error: AtomicU64::new(0) }
    }

    /// Records an error. Returns whether it is the first.
    pub(crate) fn record_error(&self, now: Instant) -> bool {
        self.last_error.swap(self.millis(now) + 1, Ordering::Relaxed) == 0
    }

    /// Records a success. Returns whether Redis has just recovered.
    pub(crate) fn record_success(&self, now: impl FnOnce() -> Instant) -> bool {
        let last = self.last_error.load(Ordering::Relaxed);
        if last == 0 {
            return false;
        }
        let without_error = Duration::from_millis((self.millis(now()) + 1).saturating_sub(last));
        without_error >= RECOVERED_AFTER
            && self.last_error.compare_exchange(last, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.created_at).as_millis()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_errors_are_one_transition() {
        let start = Instant::now();
        let transitions = ErrorTransitions::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        assert!(!transitions.record_success(|| at(0)), "no error so far");
        let mut count = 0;
        for millis in 0..10_000 {
            count += usize::from(transitions.record_error(at(millis)));
            count += usize::from(transitions.record_success(|| at(millis)));
        }
        assert_eq!(count, 1, "the first error");
        assert!(!transitions.record_success(|| at(9_999 + 4_999)));
        assert!(transitions.record_success(|| at(9_999 + 5_000)));
        assert!(!transitions.record_success(|| at(20_000)), "only once");
        assert!(transitions.record_error(at(20_001)), "the first error after the recovery");
    }
}
