//! When to stop asking.

use std::sync::atomic::{AtomicU32, Ordering};

/// Counts failed calls against good ones.
///
/// It opens after three failures in a row, or when clearly more than one call in nine fails: one pause of Redis (a
/// fork for a snapshot, say) costs the calls that it meets and nothing else.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    strain: AtomicU32,
}

impl Breaker {
    const FAILURE: u32 = 8;
    const OPEN: u32 = 3 * Self::FAILURE;

    /// A call went well. As a rule this is one read of a value that stays in the cache of every core.
    pub(super) fn succeeded(&self) {
        if self.strain.load(Ordering::Relaxed) > 0 {
            let eased = |strain: u32| strain.checked_sub(1);
            let _ = self.strain.fetch_update(Ordering::Relaxed, Ordering::Relaxed, eased);
        }
    }

    /// A call timed out; whether it is time to stop asking.
    #[must_use]
    pub(super) fn failed(&self) -> bool {
        self.strain.fetch_add(Self::FAILURE, Ordering::Relaxed) + Self::FAILURE >= Self::OPEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls until it opens, of which the first of every `period` fails; `None` if it does not open.
    fn opens_after(period: usize) -> Option<usize> {
        let breaker = Breaker::default();
        (0..10_000).find(|call| {
            if call % period == 0 {
                return breaker.failed();
            }
            breaker.succeeded();
            false
        })
    }

    #[test]
    fn opens_on_failures_in_a_row_and_on_a_share_of_them() {
        for (period, opens) in [(1, Some(2)), (2, Some(6)), (5, Some(20)), (9, None), (100, None)] {
            assert_eq!(opens_after(period), opens, "one call in {period} fails");
        }
    }
}
