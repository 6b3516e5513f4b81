//! Concurrency limits of fills, and of the requests that wait for them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chart_index_permits::{Announced, PermitQueue, QueueLimits};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{CacheConfig, Kind};

/// How long fills may wait for permits without a break before further ones are rejected: several times what a
/// read takes.
const MAX_BURST: Duration = Duration::from_millis(100);
/// The same for lists and batches, whose reads take longer.
const MAX_LIST_BURST: Duration = Duration::from_millis(500);
/// Maximum number of batches in the queue, for each that may be in flight.
const MAX_QUEUED_BATCHES: usize = 16;

/// The concurrency limits of fills. They are separate from the limit of all requests, so that requests which
/// wait for a slow store leave room for requests that the cache can serve.
///
/// Lists and pages have permits of their own, whichever engine serves them: neither they nor the other
/// responses can use up the permits of the other. The same holds for batches, each of which reads as much as
/// hundreds of single fills.
#[derive(Debug)]
pub(crate) struct FillLimits {
    store: FillPermits,
    search: FillPermits,
    batches: PermitQueue,
}

#[derive(Debug)]
struct FillPermits {
    fills: Arc<PermitQueue>,
    max_fills: usize,
    waiting: Semaphore,
}

impl FillLimits {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        let permits = |max_waiting: NonZeroUsize, max_burst| FillPermits {
            fills: Arc::new(PermitQueue::new(QueueLimits {
                permits: config.max_fills.get(),
                // Of the requests that may wait, some wait for the fills in flight.
                max_queued: max_waiting.get().saturating_sub(config.max_fills.get()),
                max_wait: config.fill_permit_timeout,
                max_burst,
            })),
            max_fills: config.max_fills.get(),
            waiting: Semaphore::new(max_waiting.get()),
        };
        Self {
            store: permits(config.max_waiting_requests, MAX_BURST),
            search: permits(config.max_waiting_lists, MAX_LIST_BURST),
            batches: PermitQueue::new(QueueLimits {
                permits: config.max_batch_fills.get(),
                max_queued: MAX_QUEUED_BATCHES * config.max_batch_fills.get(),
                max_wait: config.fill_permit_timeout,
                max_burst: MAX_LIST_BURST,
            }),
        }
    }

    /// Waits for a permit for a fill; `None` if too many fills wait and this one was not announced, or after
    /// [`CacheConfig::fill_permit_timeout`].
    pub(crate) async fn acquire_fill(
        &self,
        kind: Kind,
        announced: Option<Announced>,
    ) -> Option<SemaphorePermit<'_>> {
        let fills = &self.permits(kind).fills;
        match announced {
            Some(announced) => fills.acquire_announced(announced).await.ok(),
            None => fills.acquire().await.ok(),
        }
    }

    /// Acquires a permit for a fill if one is free.
    pub(crate) fn try_acquire_fill(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        self.permits(kind).fills.try_acquire()
    }

    /// Waits for a permit for the fill of a batch, as [`acquire_fill`](Self::acquire_fill) does.
    pub(crate) async fn acquire_batch_fill(&self) -> Option<SemaphorePermit<'_>> {
        self.batches.acquire().await.ok()
    }

    /// Reserves a place in the queue for a fill that looks in Redis first; `None` if too many fills wait.
    pub(crate) fn announce_fill(&self, kind: Kind) -> Option<Announced> {
        self.permits(kind).fills.announce()
    }

    /// Acquires a permit for a request to wait for a fill; `None` if too many requests do.
    pub(crate) fn try_acquire_waiter(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        self.permits(kind).waiting.try_acquire().ok()
    }

    /// The number of fills in flight, from the store and from the search engine.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let in_flight = |permits: &FillPermits| permits.max_fills - permits.fills.available_permits();
        (in_flight(&self.store), in_flight(&self.search))
    }

    const fn permits(&self, kind: Kind) -> &FillPermits {
        match kind {
            Kind::List | Kind::Page => &self.search,
            Kind::Lookup | Kind::Rox | Kind::Detail | Kind::Source | Kind::Preview => &self.store,
        }
    }
}
