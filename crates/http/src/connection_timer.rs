//! The timer of a connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant as StdInstant};

use hyper::rt::{Sleep, Timer};
use tokio::time::{Instant, Sleep as TokioSleep, sleep_until};

/// Measures the timeouts of a connection, one after the other: to receive the head of a request, then to handle
/// it.
///
/// All of them share one timer of the runtime. It is set when the first of them is waited for, and again only
/// when it expires before its timeout does, which is every few seconds. A timer for each takes 3 % more
/// instructions for a cached lookup.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionTimer(Arc<Mutex<Option<Pin<Box<TokioSleep>>>>>);

/// Waits until a time, by the timer of its connection.
pub(crate) struct Deadline {
    timer: ConnectionTimer,
    at: Instant,
}

impl ConnectionTimer {
    /// A deadline this long after now.
    pub(crate) fn after(&self, duration: Duration) -> Deadline {
        self.at(Instant::now() + duration)
    }

    fn at(&self, at: Instant) -> Deadline {
        Deadline { timer: self.clone(), at }
    }

    fn poll(&self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            // It was set for an earlier timeout, which is no longer waited for.
            sleep.as_mut().reset(deadline);
        }
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll(self.at, context)
    }
}

impl Sleep for Deadline {}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.after(duration))
    }

    fn sleep_until(&self, deadline: StdInstant) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.at(deadline.into()))
    }

    fn now(&self) -> StdInstant {
        // The clock of the runtime, which tests may pause.
        Instant::now().into_std()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn elapsed(deadline: Deadline) -> Duration {
        let start = Instant::now();
        deadline.await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn later_deadline_waits_longer_than_the_timer() {
        let timer = ConnectionTimer::default();
        // Sets the timer, and is dropped before it expires.
        assert!(timeout(SECOND / 10, timer.after(SECOND)).await.is_err());
        let waited = elapsed(timer.after(5 * SECOND)).await;
        assert!((5 * SECOND..6 * SECOND).contains(&waited), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_deadline_sets_the_timer_again() {
        let timer = ConnectionTimer::default();
        assert!(timeout(SECOND / 10, timer.after(10 * SECOND)).await.is_err());
        let waited = elapsed(timer.after(SECOND)).await;
        assert!((SECOND..2 * SECOND).contains(&waited), "{waited:?}");
        let waited = elapsed(timer.after(3 * SECOND)).await;
        assert!((3 * SECOND..4 * SECOND).contains(&waited), "after it has expired: {waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_in_the_past_completes_at_once() {
        let timer = ConnectionTimer::default();
        tokio::time::advance(SECOND).await;
        let past = timer.at(Instant::now() - SECOND);
        assert!(elapsed(past).await < SECOND / 10);
        assert!(elapsed(timer.after(Duration::ZERO)).await < SECOND / 10);
    }
}
