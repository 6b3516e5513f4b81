//! Requests that wait for the next change (docs/api.md, "Changes").
//!
//! Not server-sent events or a WebSocket: a mirror needs requests for pages anyway to start, with their caches,
//! limits and retries. A request is counted against the rate limit before it waits, and is in flight only after
//! that. While it waits it takes 26 KB, most of it the connection.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use chart_index_http::LongPolling;
use chart_index_instrumentation::metrics;
use clap::Args;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::page_request::FeedPageRequest;

/// Time between the ends of two waits: a change ends those of all mirrors, whose requests must not fill the
/// share of their group in the requests in flight.
const INTERVAL: Duration = Duration::from_millis(1);

/// The limit on requests that wait for a change.
#[derive(Debug, Clone, Copy, Args)]
pub struct ChangesSettings {
    /// Maximum requests of `/api/changes` that wait for a change; the response to further ones does not wait.
    /// Each has one of the `MAX_CONNECTIONS`, and all together have at most half of them.
    #[arg(long, env = "MAX_LONG_POLLS", default_value = "2048")]
    pub max_long_polls: NonZeroU32,
}

/// Lets requests for the end of the feed wait until the replica knows of a change.
#[derive(Debug)]
pub struct LongPolls {
    /// The last sequence.
    pub(super) sequence: watch::Receiver<u64>,
    permits: Arc<Semaphore>,
    /// When the last wait ended, or is to end.
    last_end: Arc<Mutex<Instant>>,
    shutdown: CancellationToken,
}

impl LongPolls {
    /// At most `max` requests wait for a change after this last sequence. Waits also end when `shutdown` is
    /// cancelled.
    #[must_use]
    pub fn new(sequence: watch::Receiver<u64>, max: NonZeroUsize, shutdown: CancellationToken) -> Self {
        let max = max.get().min(Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(max));
        metrics().observe(&permits, move |permits, metrics| {
            let waiting = max.saturating_sub(permits.available_permits());
            metrics.chart_index_long_polls_active.set([], waiting);
        });
        Self { sequence, permits, last_end: Arc::new(Mutex::new(Instant::now())), shutdown }
    }
}

impl LongPolling for LongPolls {
    fn wait(&self, request: &Request) -> Option<BoxFuture<'static, ()>> {
        // The handler reports errors.
        let request = FeedPageRequest::parse(request.uri().query().unwrap_or_default()).ok()?;
        let has_change = *self.sequence.borrow() > request.after;
        if request.wait.is_zero() || has_change || self.shutdown.is_cancelled() {
            return None;
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let (mut sequence, shutdown) = (self.sequence.clone(), self.shutdown.clone());
        let last_end = Arc::clone(&self.last_end);
        Some(Box::pin(async move {
            let _permit = permit;
            let change = async { sequence.wait_for(|last| *last > request.after).await.is_ok() };
            tokio::select! {
                true = change => {}
                () = shutdown.cancelled() => {}
                () = sleep(request.wait) => {}
            }
            sleep_until(next_end(&last_end)).await;
        }))
    }
}

/// When the next wait may end.
fn next_end(last_end: &Mutex<Instant>) -> Instant {
    let mut last_end = last_end.lock().unwrap_or_else(PoisonError::into_inner);
    *last_end = (*last_end + INTERVAL).max(Instant::now());
    *last_end
}
