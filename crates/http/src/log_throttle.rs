//! Throttled logging: one line per interval for events that any request can cause.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Throttles one kind of log line: during an outage, a line per request would add to the load and bury all
/// others.
#[derive(Debug)]
pub(crate) struct LogThrottle {
    /// At most one line is logged in this time.
    interval: Duration,
    /// When the next line may be logged, in milliseconds since the first use of any throttle.
    next_ms: AtomicU64,
    suppressed: AtomicU64,
}

impl LogThrottle {
    pub(crate) const fn new(interval: Duration) -> Self {
        Self { interval, next_ms: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Returns the number of lines suppressed since the last one if a line may be logged now, else `None`.
    pub(crate) fn try_log(&self) -> Option<u64> {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        self.try_log_at(START.elapsed())
    }

    fn try_log_at(&self, elapsed: Duration) -> Option<u64> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let next = self.next_ms.load(Ordering::Relaxed);
        let after = millis(elapsed + self.interval);
        let is_due = millis(elapsed) >= next;
        // Of concurrent callers, only one logs.
        if is_due && self.next_ms.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_counts_those_suppressed() {
        let throttle = LogThrottle::new(Duration::from_secs(1));
        let logged: Vec<_> = (0..3_500)
            .filter_map(|millis| Some((millis, throttle.try_log_at(Duration::from_millis(millis))?)))
            .collect();
        assert_eq!(logged, [(0, 0), (1_000, 999), (2_000, 999), (3_000, 999)]);
        assert_eq!(throttle.try_log_at(Duration::from_mins(1)), Some(499));
        assert_eq!(throttle.try_log_at(Duration::from_mins(2)), Some(0));
    }
}
