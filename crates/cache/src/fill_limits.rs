//! How many fills are in flight, and how many requests wait for them.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::{CacheConfig, Kind};

/// Limits the fills apart from the requests, so that requests that wait for a store which does not answer leave room
/// for those that are answered from the cache. Lists are limited apart from the rest: they come from the search
/// engine, and neither that nor PostgreSQL may use up the permits of the other.
#[derive(Debug)]
pub(crate) struct FillLimits {
    store: Permits,
    search: Permits,
    fill_permit_timeout: Duration,
}

#[derive(Debug)]
struct Permits {
    fills: Semaphore,
    waiting: Semaphore,
}

impl FillLimits {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        let permits = || Permits {
            fills: Semaphore::new(config.max_fills.get()),
            waiting: Semaphore::new(config.max_waiting_requests.get()),
        };
        Self { store: permits(), search: permits(), fill_permit_timeout: config.fill_permit_timeout }
    }

    /// A permit for a fill; `None` if none becomes free in time.
    pub(crate) async fn fill(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        timeout(self.fill_permit_timeout, self.of(kind).fills.acquire()).await.ok()?.ok()
    }

    /// A permit for a request that waits for a fill, its own or that of another; `None` if too many do.
    pub(crate) fn waiting(&self, kind: Kind) -> Option<SemaphorePermit<'_>> {
        self.of(kind).waiting.try_acquire().ok()
    }

    const fn of(&self, kind: Kind) -> &Permits {
        match kind {
            Kind::List => &self.search,
            Kind::Lookup | Kind::Rox | Kind::Detail | Kind::Source => &self.store,
        }
    }
}
