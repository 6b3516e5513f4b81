//! Concurrency limits of fills, and of the requests that wait for them.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::{CacheConfig, Kind};

/// The concurrency limits of fills. They are separate from the limit of all requests, so that requests which wait for
/// a slow store leave room for requests that the cache can serve.
///
/// Lists have permits of their own, whichever engine serves them: neither they nor the other responses can use up the
/// permits of the other.
#[derive(Debug)]
pub(crate) struct FillLimits {
    store: Permits,
    search: Permits,
    fill_permit_timeout: Duration,
}

#[derive(Debug)]
struct Permits {
    fills: Semaphore,
    max_fills: usize,
    waiting: Semaphore,
}

impl FillLimits {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        let permits = || Permits {
            fills: Semaphore::new(config.max_fills.get()),
            max_fills: config.max_fills.get(),
            waiting: Semaphore::new(config.max_waiting_requests.get()),
        };
        Self { store: permits(), search: permits(), fill_permit_timeout: config.fill_permit_timeout }
    }

    /// Waits for a permit for a fill; `None` after [`CacheConfig::fill_permit_timeout`].
    pub(crate) async fn fill(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        timeout(self.fill_permit_timeout, self.permits(kind).fills.acquire()).await.ok()?.ok()
    }

    /// A permit for a request to wait for a fill; `None` if too many requests do.
    pub(crate) fn waiting(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        self.permits(kind).waiting.try_acquire().ok()
    }

    /// The number of fills in flight, from the store and from the search engine.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let in_flight = |permits: &Permits| permits.max_fills - permits.fills.available_permits();
        (in_flight(&self.store), in_flight(&self.search))
    }

    const fn permits(&self, kind: Kind) -> &Permits {
        match kind {
            Kind::List => &self.search,
            Kind::Lookup | Kind::Rox | Kind::Detail | Kind::Source => &self.store,
        }
    }
}
