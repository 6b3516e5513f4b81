//! A pause of workers that reject many lookups.
//!
//! A worker that has nothing to do waits for events: requests, and replies of PostgreSQL and Redis. A worker
//! that rejects many lookups pauses before it waits, and then handles all events that have arrived, so that it
//! is scheduled less often (decision 0035). Network cards delay their interrupts for the same reason.
//!
//! Rejected requests of other groups cause no pause: while lookups are accepted, they should not take longer.

use std::cell::Cell;
use std::time::Duration;
use std::{mem, thread};

use tokio::time::Instant;

/// Several times what handling an event takes. Replies of PostgreSQL and Redis wait until the pause ends, too.
const PAUSE: Duration = Duration::from_micros(100);

/// The longest time between two rejections that cause a pause. A rejection takes about 20 µs, so those that are
/// further apart take less than 4 % of the core.
const MAX_INTERVAL: Duration = Duration::from_micros(500);

thread_local! {
    static REJECTIONS: Cell<Rejections> = const { Cell::new(Rejections::NONE) };
}

/// The rejected lookups of a thread.
#[derive(Debug, Clone, Copy)]
struct Rejections {
    last_at: Option<Instant>,
    is_pause_due: bool,
}

impl Rejections {
    const NONE: Self = Self { last_at: None, is_pause_due: false };

    fn record(&mut self, now: Instant) {
        let since_last = self.last_at.map(|last_at| now.duration_since(last_at));
        self.is_pause_due |= since_last.is_some_and(|since_last| since_last <= MAX_INTERVAL);
        self.last_at = Some(now);
    }

    /// Whether a pause was due; it no longer is.
    const fn take_due_pause(&mut self) -> bool {
        mem::replace(&mut self.is_pause_due, false)
    }
}

/// Records that this thread rejected a lookup because of overload.
pub(crate) fn record_rejected_lookup(now: Instant) {
    let mut rejections = REJECTIONS.get();
    rejections.record(now);
    REJECTIONS.set(rejections);
}

/// Pauses this thread if it has rejected two lookups in quick succession since the last call.
#[expect(
    clippy::disallowed_methods,
    reason = "the worker has nothing else to do, and is to handle no event meanwhile"
)]
pub(crate) fn pause_if_due() {
    if take_due_pause() {
        thread::sleep(PAUSE);
    }
}

/// Whether a pause of this thread was due; it no longer is.
pub(crate) fn take_due_pause() -> bool {
    let mut rejections = REJECTIONS.get();
    let is_due = rejections.take_due_pause();
    REJECTIONS.set(rejections);
    is_due
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tokio::time::timeout;

    use super::*;
    use crate::WorkerThreads;

    #[test]
    fn a_pause_is_due_once_after_rejections_in_quick_succession() {
        let (start, mut rejections) = (Instant::now(), Rejections::NONE);
        for (micros, expected) in [(0, false), (5_000, false), (5_100, true), (5_600, true), (6_200, false)] {
            rejections.record(start + Duration::from_micros(micros));
            assert_eq!(rejections.take_due_pause(), expected, "after {micros} µs");
            assert!(!rejections.take_due_pause(), "twice");
        }
    }

    #[test]
    fn a_due_pause_remains_due() {
        let (start, mut rejections) = (Instant::now(), Rejections::NONE);
        for micros in [0, 100, 50_000] {
            rejections.record(start + Duration::from_micros(micros));
        }
        assert!(rejections.take_due_pause());
    }

    /// Before the worker waits for the next event.
    #[tokio::test]
    async fn workers_take_due_pauses() {
        let threads = WorkerThreads::start(NonZeroUsize::MIN).unwrap();
        let [worker] = threads.runtimes() else { panic!("one worker") };
        let reject_twice = async {
            let now = Instant::now();
            record_rejected_lookup(now);
            record_rejected_lookup(now);
        };
        worker.spawn(reject_twice).await.unwrap();
        let until_taken =
            async { while worker.spawn(async { REJECTIONS.get().is_pause_due }).await.unwrap() {} };
        timeout(Duration::from_secs(10), until_taken).await.expect("the worker pauses");
    }
}
