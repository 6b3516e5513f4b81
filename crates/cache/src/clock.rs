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
        Now { real_ms, coarse: CoarseInstant::from_millis(real_ms + self.ahead_ms.load(Ordering::Relaxed)) }
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
    /// The time that entries age by.
    pub(crate) coarse: CoarseInstant,
}

/// A time in 4 bytes, which keeps the entries of unknown hashes small: ticks of 10 ms, which wrap after 497
/// days. No entry gets that old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoarseInstant(u32);

impl CoarseInstant {
    const TICK_MS: u64 = 10;

    #[expect(clippy::cast_possible_truncation, reason = "ticks wrap, and are only subtracted")]
    const fn from_millis(ms: u64) -> Self {
        Self((ms / Self::TICK_MS) as u32)
    }

    /// The time since an earlier instant; zero if that is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.wrapping_sub(earlier.0);
        // More than half of the range: the other one is later.
        if ticks > u32::MAX / 2 {
            Duration::ZERO
        } else {
            Duration::from_millis(ticks as u64 * Self::TICK_MS)
        }
    }

    /// The instant that is this much earlier.
    pub(crate) fn before(self, by: Duration) -> Self {
        let ticks = (millis(by) / Self::TICK_MS).min(u64::from(u32::MAX / 2));
        Self(self.0.wrapping_sub(u32::try_from(ticks).unwrap_or(u32::MAX / 2)))
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_compare_across_the_wrap() {
        let hour = Duration::from_hours(1);
        for now in [CoarseInstant(5), CoarseInstant(u32::MAX), CoarseInstant(1_000_000)] {
            assert_eq!(now.since(now.before(hour)), hour);
            assert_eq!(now.before(hour).since(now), Duration::ZERO);
        }
    }

    #[test]
    fn advance_moves_the_clock() {
        let clock = Clock::default();
        let (before, unix_ms) = (clock.now(), clock.unix_ms());
        clock.clone().advance(Duration::from_mins(1));
        assert!(clock.now().coarse.since(before.coarse) >= Duration::from_mins(1));
        assert!(clock.now().real_ms - before.real_ms < 60_000);
        assert!(clock.unix_ms() >= unix_ms + 60_000);
    }
}
