//! The circuit breaker in front of a connection: the crate has none.

use std::sync::atomic::{AtomicU32, Ordering};

/// Weighs timeouts against successful commands, and decides when to stop sending any.
///
/// It opens after three timeouts in a row, or when clearly more than one command in nine times out. A single
/// pause of Redis, such as the fork for a snapshot, fails the commands that it delays and no others.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// Rises by [`Self::TIMEOUT`] with every timeout, and falls by 1 with every success.
    score: AtomicU32,
}

impl CircuitBreaker {
    const TIMEOUT: u32 = 8;
    const OPEN: u32 = 3 * Self::TIMEOUT;

    /// Records a reply. Usually this only reads a value that stays in the caches of all cores.
    pub(crate) fn record_success(&self) {
        if self.score.load(Ordering::Relaxed) > 0 {
            let decrement = |score: u32| score.checked_sub(1);
            let _ = self.score.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement);
        }
    }

    /// Records a timeout. Returns whether the breaker is open now.
    #[must_use]
    pub(crate) fn record_timeout(&self) -> bool {
        self.score.fetch_add(Self::TIMEOUT, Ordering::Relaxed) + Self::TIMEOUT >= Self::OPEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of commands until the breaker opens if the first of every `period` times out; `None` if it
    /// never does.
    fn opens_after(period: usize) -> Option<usize> {
        let breaker = CircuitBreaker::default();
        (0..10_000).find(|command| {
            if command % period == 0 {
                return breaker.record_timeout();
            }
            breaker.record_success();
            false
        })
    }

    #[test]
    fn opens_on_consecutive_or_frequent_timeouts() {
        for (period, opens) in [(1, Some(2)), (2, Some(6)), (5, Some(20)), (9, None), (100, None)] {
            assert_eq!(opens_after(period), opens, "one command in {period} times out");
        }
    }
}
