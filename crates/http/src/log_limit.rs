//! At most one line a second of each kind, for what every request may cause.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time in which one line of a kind is written.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits the lines of one kind in the log: while a database is unavailable, a line for each request would add to the
/// load and hide every other one.
#[derive(Debug)]
pub(crate) struct LogLimit {
    /// From when on the next line may be written, in milliseconds since the first use of any limit.
    next_ms: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self { next_ms: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Whether a line may be written now, and if so, how many were suppressed since the one before it.
    pub(crate) fn permit(&self) -> Option<u64> {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        self.permit_at(BEGUN.elapsed())
    }

    fn permit_at(&self, elapsed: Duration) -> Option<u64> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let next = self.next_ms.load(Ordering::Relaxed);
        let after = millis(elapsed + INTERVAL);
        let is_due = millis(elapsed) >= next;
        // Of threads that come at the same time, one writes.
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
    fn one_line_a_second_tells_how_many_were_suppressed() {
        let limit = LogLimit::new();
        let permits: Vec<_> = (0..3_500)
            .filter_map(|millis| Some((millis, limit.permit_at(Duration::from_millis(millis))?)))
            .collect();
        assert_eq!(permits, [(0, 0), (1_000, 999), (2_000, 999), (3_000, 999)]);
        assert_eq!(limit.permit_at(Duration::from_mins(1)), Some(499));
        assert_eq!(limit.permit_at(Duration::from_mins(2)), Some(0));
    }
}
