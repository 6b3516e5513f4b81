//! Concurrency limits of fills, and of the requests that wait for them.

use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::permit_queue::{PermitQueue, QueueLimits};
use crate::{CacheConfig, Kind};

/// How long fills may wait for permits without a break before further ones are rejected: several times what a
/// read takes.
const MAX_BURST: Duration = Duration::from_millis(100);
/// The same for lists and batches, whose reads take longer.
const MAX_LIST_BURST: Duration = Duration::from_millis(500);
/// How long a fill that searches PostgreSQL waits for a permit: the usual deadline of a request minus the time
/// of the search itself.
const MAX_SEARCH_WAIT: Duration = Duration::from_secs(4);
/// Maximum number of fills of batches in flight. Each uses a connection of the store for tens of milliseconds.
const MAX_BATCHES: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Maximum number of batches in the queue.
const MAX_QUEUED_BATCHES: usize = 32;

/// The concurrency limits of fills. They are separate from the limit of all requests, so that requests which
/// wait for a slow store leave room for requests that the cache can serve.
///
/// Each fill waits in one queue: that of lists and pages, that of those for which PostgreSQL searches, or that
/// of all other reads. None of them can use up the permits of another. The same holds for batches, each of
/// which reads as much as hundreds of single fills.
#[derive(Debug)]
pub(crate) struct FillLimits {
    reads: PermitQueue,
    lists: PermitQueue,
    postgres_searches: PermitQueue,
    batches: PermitQueue,
    waiting_requests: Semaphore,
    waiting_lists: Semaphore,
}

impl FillLimits {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        let queue = |permits: NonZeroUsize, max_queued, max_wait, max_burst| {
            PermitQueue::new(QueueLimits { permits: permits.get(), max_queued, max_wait, max_burst })
        };
        // Of the requests that may wait, some wait for the fills in flight.
        let shared = |permits: NonZeroUsize, max_waiting: NonZeroUsize, max_wait, max_burst| {
            let max_queued = max_waiting.get().saturating_sub(permits.get());
            queue(permits, max_queued, max_wait, max_burst)
        };
        let (max_wait, max_lists) = (config.fill_permit_timeout, config.max_waiting_lists);
        Self {
            reads: shared(config.max_fills, config.max_waiting_requests, max_wait, MAX_BURST),
            lists: shared(config.max_fills, max_lists, max_wait, MAX_LIST_BURST),
            postgres_searches: shared(
                config.max_postgres_searches,
                max_lists,
                MAX_SEARCH_WAIT,
                MAX_LIST_BURST,
            ),
            batches: queue(MAX_BATCHES, MAX_QUEUED_BATCHES, max_wait, MAX_LIST_BURST),
            waiting_requests: Semaphore::new(config.max_waiting_requests.get()),
            waiting_lists: Semaphore::new(max_lists.get()),
        }
    }

    /// Waits for a permit for a fill; `None` if too many fills wait, or after the maximum time in the queue.
    pub(crate) async fn acquire_fill(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        let (queue, _) = self.limits(kind);
        queue.acquire().await
    }

    /// Whether too many fills wait for a permit.
    pub(crate) fn rejects_fills(&self, kind: Kind) -> bool {
        let (queue, _) = self.limits(kind);
        queue.is_rejecting()
    }

    /// Acquires a permit for a fill if one is free.
    pub(crate) fn try_acquire_fill(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        let (queue, _) = self.limits(kind);
        queue.try_acquire()
    }

    /// Waits for a permit for the fill of a batch, as [`acquire_fill`](Self::acquire_fill) does.
    pub(crate) async fn acquire_batch_fill(&self) -> Option<SemaphorePermit<'_>> {
        self.batches.acquire().await
    }

    /// Acquires a permit for a request to wait for a fill; `None` if too many requests do.
    pub(crate) fn try_acquire_waiter(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        let (_, waiting) = self.limits(kind);
        waiting.try_acquire().ok()
    }

    /// The number of fills in flight in each queue: reads, lists and pages, searches of PostgreSQL.
    pub(crate) fn in_flight(&self) -> [usize; 3] {
        [&self.reads, &self.lists, &self.postgres_searches].map(PermitQueue::in_flight)
    }

    /// The queue of the fills of a kind, and the permits of the requests that wait for them.
    const fn limits(&self, kind: Kind) -> (&PermitQueue, &Semaphore) {
        match kind {
            Kind::List | Kind::Page => (&self.lists, &self.waiting_lists),
            Kind::PostgresList | Kind::PostgresPage => (&self.postgres_searches, &self.waiting_lists),
            Kind::Lookup
            | Kind::Rox
            | Kind::Detail
            | Kind::Source
            | Kind::ChartSource
            | Kind::Preview
            | Kind::Extended => (&self.reads, &self.waiting_requests),
        }
    }
}
