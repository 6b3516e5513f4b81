//! The clock of the cache.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clock that entries age by. Tests can advance it.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    ahead_ms: Arc<AtomicU64>,
}

/// When [`real_ms`] starts.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Starts [`real_ms`], unless it has started.
pub(crate) fn start() {
    LazyLock::force(&START);
}

/// The time of an instant in milliseconds since the first call, which tests do not advance.
pub(crate) fn real_ms(instant: Instant) -> u64 {
    millis(instant.saturating_duration_since(*START))
}

impl Clock {
    /// Advances the clock and all of its clones: entries age by this much.
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(millis(by), Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Now {
        let real_ms = real_ms(Instant::now());
        Now { real_ms, ms: (real_ms + self.ahead_ms.load(Ordering::Relaxed)).cast_signed() }
    }

    /// The Unix time in milliseconds, which all replicas share.
    pub(crate) fn unix_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        millis(since_epoch) + self.ahead_ms.load(Ordering::Relaxed)
    }
}

/// The time of one read of the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// See [`real_ms`].
    pub(crate) real_ms: u64,
    /// The time that entries age by, from the same start. That of a read by another replica may be negative.
    pub(crate) ms: i64,
}

impl Now {
    /// The time since `earlier_ms`; zero if that is later.
    pub(crate) fn since(self, earlier_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.ms - earlier_ms).unwrap_or(0))
    }

    /// The time that is this much earlier.
    pub(crate) fn before(self, by: Duration) -> i64 {
        self.ms - millis(by).cast_signed()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_may_begin_before_the_process() {
        let hour = Duration::from_hours(1);
        let now = Now { real_ms: 5, ms: 5 };
        assert_eq!(now.since(now.before(hour)), hour);
        assert_eq!(now.since(now.ms + 1), Duration::ZERO);
    }

    #[test]
    fn advance_moves_the_clock() {
        let clock = Clock::default();
        let (before, unix_ms) = (clock.now(), clock.unix_ms());
        clock.clone().advance(Duration::from_mins(1));
        assert!(clock.now().since(before.ms) >= Duration::from_mins(1));
        assert!(clock.now().real_ms - before.real_ms < 60_000);
        assert!(clock.unix_ms() >= unix_ms + 60_000);
    }
}
