//! Concurrency limits with a queue.
//!
//! A queue in front of a limit absorbs bursts. Under overload it never empties and only delays every request by
//! its length. [`PermitQueue`] detects this as `CoDel` does (RFC 8289), and then rejects at once, before Redis
//! is asked for the response. Without this, at three times the sustainable rate of lookups, throughput fell to
//! 36 to 55 % of the peak; with it 100 % are accepted (benchmarks/results/2026-11-24-overload.md).
//!
//! Timeouts in the queue would cost a timer and a wait for each rejection, and adaptive limits (gradient, AIMD)
//! estimate what the queue shows directly. Cache hits are not rejected: a rejection costs 17 µs, a hit 28 µs.

#[cfg(all(test, feature = "shuttle"))]
mod shuttle_tests;

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// How long after the last rejection the queue stays short. Under overload it empties now and then by chance,
/// and would fill up again each time.
const RECOVERY: Duration = Duration::from_millis(500);

/// Permits, and a queue of callers that wait for one.
///
/// Once the queue has not been empty for [`QueueLimits::max_burst`], it takes no more callers than there are
/// permits, and rejects all others at once. It takes more again when it has rejected none for half a second.
#[derive(Debug)]
pub(crate) struct PermitQueue {
    permits: Semaphore,
    limits: QueueLimits,
    max_queued_overloaded: usize,
    state: Mutex<QueueState>,
}

/// The configuration of a [`PermitQueue`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// Maximum callers with a permit, at least one.
    pub(crate) permits: usize,
    /// Maximum callers in the queue, unless there is overload.
    pub(crate) max_queued: usize,
    /// Maximum time in the queue.
    pub(crate) max_wait: Duration,
    /// Maximum time for which a burst may keep the queue from being empty, like the interval of `CoDel` (RFC
    /// 8289, section 4.3): several times as long as a caller holds its permit.
    pub(crate) max_burst: Duration,
}

#[derive(Debug, Default)]
struct QueueState {
    queued: usize,
    /// When the queue was last empty, while it is not.
    last_empty_at: Option<Instant>,
    last_rejected_at: Option<Instant>,
}

impl PermitQueue {
    /// Creates permits, none of which is in use.
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let limits = QueueLimits { permits: limits.permits.clamp(1, Semaphore::MAX_PERMITS), ..limits };
        Self {
            permits: Semaphore::new(limits.permits),
            limits,
            max_queued_overloaded: limits.max_queued.min(limits.permits),
            state: Mutex::default(),
        }
    }

    /// Waits for a permit, in the order of the calls; `None` if the queue is full, or short because of
    /// overload, or if no permit is free within [`QueueLimits::max_wait`].
    pub(crate) async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        if let Some(permit) = self.try_acquire() {
            return Some(permit);
        }
        let _queued = self.enqueue()?;
        if let Ok(Ok(permit)) = timeout(self.limits.max_wait, self.permits.acquire()).await {
            return Some(permit);
        }
        self.state().last_rejected_at = Some(Instant::now());
        None
    }

    /// Acquires a permit if one is free.
    pub(crate) fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.try_acquire().ok()
    }

    /// Whether a caller would be rejected that calls [`acquire`](Self::acquire) now.
    pub(crate) fn is_rejecting(&self) -> bool {
        !self.state().admit(self)
    }

    /// The number of permits in use.
    pub(crate) fn in_flight(&self) -> usize {
        self.limits.permits - self.permits.available_permits()
    }

    fn enqueue(&self) -> Option<Queued<'_>> {
        let mut state = self.state();
        if !state.admit(self) {
            return None;
        }
        if state.queued == 0 {
            state.last_empty_at = Some(Instant::now());
        }
        state.queued += 1;
        Some(Queued(self))
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Decides whether one more caller may wait in the queue, and records when one may not.
    fn admit(&mut self, queue: &PermitQueue) -> bool {
        let free = queue.permits.available_permits();
        if self.queued < free + queue.max_queued_overloaded {
            return true;
        }
        let now = Instant::now();
        let within = |at: Option<Instant>, time| at.is_some_and(|at| now.duration_since(at) < time);
        let is_standing = self.last_empty_at.is_some() && !within(self.last_empty_at, queue.limits.max_burst);
        let is_overloaded = is_standing || within(self.last_rejected_at, RECOVERY);
        let is_rejected = is_overloaded || self.queued >= queue.limits.max_queued;
        if is_rejected {
            self.last_rejected_at = Some(now);
        }
        !is_rejected
    }
}

struct Queued<'queue>(&'queue PermitQueue);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.queued -= 1;
        if state.queued == 0 {
            state.last_empty_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;
    use tokio::time::{advance, sleep};

    use super::*;

    const MAX_WAIT: Duration = Duration::from_secs(4);
    const MAX_QUEUED: usize = 20;
    const MAX_BURST: Duration = Duration::from_millis(100);

    /// Eight permits, for which eight callers may wait under overload.
    fn limit() -> Arc<PermitQueue> {
        let limits =
            QueueLimits { permits: 8, max_queued: MAX_QUEUED, max_wait: MAX_WAIT, max_burst: MAX_BURST };
        Arc::new(PermitQueue::new(limits))
    }

    /// Callers that hold their permit for this time.
    async fn spawn(calls: &mut JoinSet<Option<()>>, limit: &Arc<PermitQueue>, number: usize, hold: Duration) {
        for _ in 0..number {
            let limit = Arc::clone(limit);
            calls.spawn(async move {
                let _permit = limit.acquire().await?;
                sleep(hold).await;
                Some(())
            });
        }
        tokio::task::yield_now().await;
    }

    async fn rejected(calls: JoinSet<Option<()>>) -> usize {
        calls.join_all().await.into_iter().filter(Option::is_none).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_waits() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        // Longer than a burst may last, so that this is overload.
        spawn(&mut calls, &limit, 8 + MAX_QUEUED, MAX_BURST * 2).await;
        assert_eq!(rejected(calls).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_rejects_at_once() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        spawn(&mut calls, &limit, 8 + MAX_QUEUED, Duration::from_millis(1)).await;
        assert!(limit.is_rejecting());
        assert!(limit.acquire().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_awaited_up_to_a_timeout() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        let start = Instant::now();
        spawn(&mut calls, &limit, 9, MAX_WAIT * 2).await;
        let first = calls.join_next().await.unwrap().unwrap();
        assert_eq!((first, start.elapsed()), (None, MAX_WAIT));
        assert_eq!(rejected(calls).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_standing_queue_is_short() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        spawn(&mut calls, &limit, 8 + 12, Duration::from_secs(1)).await;
        assert!(!limit.is_rejecting(), "a burst");
        advance(MAX_BURST).await;
        assert!(limit.is_rejecting(), "twelve wait");
        advance(Duration::from_secs(1)).await;
        assert_eq!(rejected(calls).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn overload_is_over_some_time_after_a_rejection() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        spawn(&mut calls, &limit, 8 + 12, Duration::from_secs(1)).await;
        advance(MAX_BURST).await;
        assert!(limit.is_rejecting());
        calls.shutdown().await;
        for (pause, expected) in [(Duration::ZERO, 4), (RECOVERY, 0)] {
            sleep(pause).await;
            let mut calls = JoinSet::new();
            spawn(&mut calls, &limit, 8 + 12, Duration::from_millis(10)).await;
            assert_eq!(rejected(calls).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn free_permits_are_used_under_overload_without_a_queue() {
        let limits = QueueLimits { permits: 2, max_queued: 0, max_wait: MAX_WAIT, max_burst: MAX_BURST };
        let limit = Arc::new(PermitQueue::new(limits));
        let held = [limit.acquire().await, limit.acquire().await];
        assert!(limit.acquire().await.is_none());
        drop(held);
        let held = [limit.acquire().await, limit.acquire().await];
        assert!(held.iter().all(Option::is_some));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_give_up_leave_the_queue() {
        let (limit, mut calls) = (limit(), JoinSet::new());
        spawn(&mut calls, &limit, 8 + MAX_QUEUED, MAX_WAIT).await;
        assert!(limit.is_rejecting());
        calls.shutdown().await;
        assert_eq!(limit.in_flight(), 0);
        let state = limit.state();
        assert_eq!((state.queued, state.last_empty_at), (0, None));
    }
}
