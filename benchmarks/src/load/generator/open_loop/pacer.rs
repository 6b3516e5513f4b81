//! Releases requests when they are due.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{Timespec, nanosleep};
use tokio::sync::Semaphore;

/// Requests that are due within this time are released together, so that a high rate costs no wake-up for each
/// of them.
const STEP: Duration = Duration::from_micros(100);

/// The longest sleep: the end of the load is noticed after it.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Adds a permit to a semaphore for each request that is due. It sleeps in a thread of its own, since timers of
/// tokio are up to a millisecond late.
#[derive(Debug)]
pub(super) struct Pacer {
    start: Instant,
    rate: u32,
    due: Arc<Semaphore>,
    released: u64,
}

impl Pacer {
    /// Starts the pacer; the first request is due at the time that is returned. It ends when the semaphore has
    /// no other owner.
    pub(super) fn spawn(rate: u32, due: Arc<Semaphore>) -> Instant {
        let start = Instant::now();
        let pacer = Self { start, rate, due, released: 0 };
        thread::spawn(move || pacer.run());
        start
    }

    fn run(mut self) {
        while Arc::strong_count(&self.due) > 1 {
            self.release();
            let next = Duration::from_secs_f64(crate::cpu::ratio(self.released, u64::from(self.rate)));
            sleep(next.saturating_sub(self.start.elapsed()).clamp(STEP, MAX_SLEEP));
        }
    }

    fn release(&mut self) {
        let passed = self.start.elapsed().as_nanos() * u128::from(self.rate) / 1_000_000_000;
        // Request 0 is due at the start.
        let due = u64::try_from(passed).unwrap_or(u64::MAX).saturating_add(1);
        let more = due.saturating_sub(self.released);
        self.due.add_permits(usize::try_from(more).unwrap_or(usize::MAX));
        self.released += more;
    }
}

/// Sleeps in the kernel; a signal may end the sleep early.
fn sleep(duration: Duration) {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let _ = nanosleep(&Timespec { tv_sec: seconds, tv_nsec: i64::from(duration.subsec_nanos()) });
}
