//! Follows the catalogue for a replica: polls what has changed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chart_index_domain::CataloguePoll;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::Store;
use crate::metrics::observe_availability;

/// PostgreSQL counts as available for this time after a poll.
const AVAILABLE_AFTER_POLL: Duration = Duration::from_secs(5);

/// Polls the catalogue at an interval. Clones share the task, which ends with the last of them.
#[derive(Clone)]
pub struct CatalogueWatch {
    last: Arc<LastPoll>,
    _task: Option<Arc<AbortOnDropHandle<()>>>,
}

#[derive(Debug, Default)]
struct LastPoll {
    sequence: watch::Sender<u64>,
    at: Mutex<Option<Instant>>,
}

impl CatalogueWatch {
    /// A watch that never polls, for programs that cache nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { last: Arc::default(), _task: None }
    }

    /// Polls once, waiting up to `interval` for it, and then once per interval. Calls `on_poll` with each
    /// result and the time at which the poll began.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start(
        store: &Store,
        interval: Duration,
        on_poll: impl Fn(CataloguePoll, Instant) + Send + Sync + 'static,
    ) -> Self {
        let last = Arc::<LastPoll>::default();
        let watched = Arc::downgrade(&last);
        observe_availability(move || watched.upgrade()?.is_recent());
        let poll = {
            let (store, last) = (store.clone(), Arc::clone(&last));
            async move || poll(&store, &last, &on_poll).await
        };
        let _ = tokio::time::timeout(interval, poll()).await;
        let task = tokio::spawn(async move {
            let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                poll().await;
            }
        });
        Self { last, _task: Some(Arc::new(AbortOnDropHandle::new(task))) }
    }

    /// The last sequence of the change feed when it was last polled; 0 before that.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        *self.last.sequence.borrow()
    }

    /// The same, and its changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.sequence.subscribe()
    }
}

impl fmt::Debug for CatalogueWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CatalogueWatch").field(&self.last).finish()
    }
}

impl LastPoll {
    /// Whether PostgreSQL counts as available; `None` before the first poll.
    fn is_recent(&self) -> Option<bool> {
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.map(|at| at.elapsed() < AVAILABLE_AFTER_POLL)
    }
}

async fn poll(store: &Store, last: &LastPoll, on_poll: &(impl Fn(CataloguePoll, Instant) + Sync)) {
    let began = Instant::now();
    let after = *last.sequence.borrow();
    match store.poll_catalogue(after).await {
        Ok(poll) => {
            let sequence = poll.position.sequence;
            *last.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
            on_poll(poll, began);
            last.sequence.send_replace(sequence);
        }
        // Requests report an outage; this task only misses changes.
        Err(error) => tracing::debug!(%error, "polling the catalogue failed"),
    }
}
