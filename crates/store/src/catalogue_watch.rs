//! Follows the generation of the catalogue.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chart_index_domain::search::{DatabaseIdentity, Generation};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::Store;
use crate::metrics::observe_availability;

/// PostgreSQL counts as available for this time after a read.
const AVAILABLE_AFTER_READ: Duration = Duration::from_secs(5);

/// The last known generation of the catalogue, polled at an interval. Clones share it.
///
/// A value cached under a generation is invalid as soon as the next generation is read, so at most one interval
/// after a change. While PostgreSQL is unavailable the generation does not change, so cached values stay valid.
#[derive(Clone)]
pub struct CatalogueWatch {
    generation: Arc<AtomicU64>,
    last_read: LastRead,
    /// Aborted with the last clone.
    _task: Option<Arc<AbortOnDropHandle<()>>>,
}

type LastRead = Arc<Mutex<Option<CatalogueRead>>>;

/// The result of a successful read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueRead {
    /// Differs after every change of the catalogue.
    pub generation: Generation,
    /// The database it was read from: another one after a restore, a failover or a change of the address.
    pub database: DatabaseIdentity,
    /// When the read began.
    pub read_at: std::time::Instant,
}

impl CatalogueWatch {
    /// A watch that never reads the generation, for programs that cache nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { generation: Arc::default(), last_read: LastRead::default(), _task: None }
    }

    /// Reads the generation once, waiting up to `interval` for it, and then once per interval.
    ///
    /// Until the first read succeeds the generation is a random number, so that nothing cached by another
    /// process counts as current.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start(store: &Store, interval: Duration) -> Self {
        let (generation, last_read) = (Arc::new(AtomicU64::new(fastrand::u64(..))), LastRead::default());
        let watched = Arc::downgrade(&last_read);
        observe_availability(move || watched.upgrade().map(|last_read| is_recent(&last_read)));
        let _ = tokio::time::timeout(interval, refresh(store, &generation, &last_read)).await;
        let refreshing =
            refresh_periodically(store.clone(), Arc::clone(&generation), last_read.clone(), interval);
        let task = Some(Arc::new(AbortOnDropHandle::new(tokio::spawn(refreshing))));
        Self { generation, last_read, _task: task }
    }

    /// The last successful read; `None` before the first one.
    #[must_use]
    pub fn last_read(&self) -> Option<CatalogueRead> {
        *lock(&self.last_read)
    }

    /// The generation that was last read.
    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Acquire))
    }
}

impl fmt::Debug for CatalogueWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CatalogueWatch").field(&self.generation()).finish()
    }
}

async fn refresh_periodically(
    store: Store,
    generation: Arc<AtomicU64>,
    last_read: LastRead,
    interval: Duration,
) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        refresh(&store, &generation, &last_read).await;
    }
}

async fn refresh(store: &Store, generation: &AtomicU64, last_read: &LastRead) {
    let read_at = std::time::Instant::now();
    match store.generation_and_database().await {
        Ok((read, database)) => {
            generation.store(read.0, Ordering::Release);
            *lock(last_read) = Some(CatalogueRead { generation: read, database, read_at });
        }
        // Requests report an outage; this task only misses changes.
        Err(error) => tracing::debug!(%error, "reading the generation of the catalogue failed"),
    }
}

fn is_recent(last_read: &Mutex<Option<CatalogueRead>>) -> bool {
    lock(last_read).is_some_and(|read| read.read_at.elapsed() < AVAILABLE_AFTER_READ)
}

fn lock(last_read: &Mutex<Option<CatalogueRead>>) -> MutexGuard<'_, Option<CatalogueRead>> {
    last_read.lock().unwrap_or_else(PoisonError::into_inner)
}
