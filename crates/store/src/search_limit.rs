//! The concurrency limit of the PostgreSQL search engine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Maximum number of searches that wait for a permit. Above it searches fail at once: each of them occupies a request,
/// and lookups need some as well.
const MAX_QUEUED: usize = 256;
/// Longest time that a search waits for a permit: the usual deadline of a request, less the time of the search itself.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(4);

/// Limits the searches in flight, since one may take as long as hundreds of lookups, and the searches that wait. Clones
/// share the permits.
#[derive(Debug, Clone)]
pub(crate) struct SearchLimit {
    permits: Arc<Permits>,
}

#[derive(Debug)]
struct Permits {
    in_flight: Semaphore,
    queued: Semaphore,
}

/// A search was rejected because too many others are running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchLimitExceeded {
    /// Too many searches are waiting.
    #[error("search queue full ({MAX_QUEUED} waiting)")]
    QueueFull,
    /// No permit was available in time.
    #[error("no search permit within {} ms", QUEUE_TIMEOUT.as_millis())]
    TimedOut,
}

impl SearchLimit {
    /// Creates a limit of `max_searches`, and of half of the connections, so that lookups have some.
    pub(crate) fn new(max_searches: usize, max_connections: u32) -> Self {
        let half = usize::try_from(max_connections / 2).unwrap_or(usize::MAX).max(1);
        let in_flight = Semaphore::new(max_searches.min(half));
        Self { permits: Arc::new(Permits { in_flight, queued: Semaphore::new(MAX_QUEUED) }) }
    }

    /// Waits for a permit, in the order of the calls.
    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, SearchLimitExceeded> {
        if let Ok(permit) = self.permits.in_flight.try_acquire() {
            return Ok(permit);
        }
        let _queued = self.permits.queued.try_acquire().map_err(|_| SearchLimitExceeded::QueueFull)?;
        match timeout(QUEUE_TIMEOUT, self.permits.in_flight.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(SearchLimitExceeded::TimedOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_keep_half_of_the_connections() {
        for (max_searches, max_connections, expected) in
            [(4, 16, 4), (4, 8, 4), (4, 4, 2), (4, 1, 1), (1, 16, 1), (100, 16, 8)]
        {
            let limit = SearchLimit::new(max_searches, max_connections);
            assert_eq!(limit.permits.in_flight.available_permits(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_waits_for_a_permit_up_to_a_timeout() {
        let limit = SearchLimit::new(1, 16);
        let running = limit.acquire().await.unwrap();
        assert!(matches!(limit.acquire().await, Err(SearchLimitExceeded::TimedOut)));
        let waiting = tokio::spawn({
            let limit = limit.clone();
            async move { limit.acquire().await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(running);
        assert!(waiting.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_rejects_at_once() {
        let limit = SearchLimit::new(1, 16);
        let _running = limit.acquire().await.unwrap();
        let queue: Vec<_> = (0..MAX_QUEUED)
            .map(|_| {
                let limit = limit.clone();
                tokio::spawn(async move { limit.acquire().await.map(drop) })
            })
            .collect();
        while limit.permits.queued.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(limit.acquire().await, Err(SearchLimitExceeded::QueueFull)));
        for waiting in queue {
            assert!(matches!(waiting.await.unwrap(), Err(SearchLimitExceeded::TimedOut)));
        }
    }
}
