//! The generation of the catalogue: whether anything changed, told without looking at everything.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart_index_domain::ReadError;
use chart_index_domain::search::Generation;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::Store;

/// The generation of the catalogue as it was last read. Clones share it.
///
/// What is kept under a generation is out of force as soon as the next one is heard: within the interval of the
/// watch. While PostgreSQL cannot be read the generation stays what it was, and with it what was kept.
#[derive(Clone)]
pub struct CatalogueWatch {
    generation: Arc<AtomicU64>,
    last_read: LastRead,
    /// Ends with the last clone.
    _task: Option<Arc<AbortOnDropHandle<()>>>,
}

/// What a read gave that succeeded, and when it began.
type LastRead = Arc<Mutex<Option<(Generation, std::time::Instant)>>>;

impl CatalogueWatch {
    /// A watch that reads nothing, for programs that keep nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { generation: Arc::default(), last_read: LastRead::default(), _task: None }
    }

    /// Reads the generation now, waiting for it no longer than the interval, and then once in every interval.
    ///
    /// Until it was read for the first time it is a number that no other process has: nothing that somebody kept
    /// is taken for the present.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start(store: &Store, interval: Duration) -> Self {
        let (generation, last_read) = (Arc::new(AtomicU64::new(fastrand::u64(..))), LastRead::default());
        let _ = tokio::time::timeout(interval, read_into(store, &generation, &last_read)).await;
        let following = follow(store.clone(), Arc::clone(&generation), last_read.clone(), interval);
        let task = Some(Arc::new(AbortOnDropHandle::new(tokio::spawn(following))));
        Self { generation, last_read, _task: task }
    }

    /// The generation as it was last read, and when that read began; `None` before the first one succeeded.
    #[must_use]
    pub fn last_read(&self) -> Option<(Generation, std::time::Instant)> {
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The generation as it was last read.
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

async fn follow(store: Store, generation: Arc<AtomicU64>, last_read: LastRead, interval: Duration) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        read_into(&store, &generation, &last_read).await;
    }
}

async fn read_into(store: &Store, generation: &AtomicU64, last_read: &LastRead) {
    let began = std::time::Instant::now();
    match store.generation().await {
        Ok(read) => {
            generation.store(read.0, Ordering::Release);
            *last_read.lock().unwrap_or_else(PoisonError::into_inner) = Some((read, began));
        }
        // Those that are asked something tell of an outage; this one only does not hear of changes.
        Err(error) => tracing::debug!(%error, "the generation of the catalogue cannot be read"),
    }
}

/// What a generation is the digest of: the newest row of the outbox, and the sum of the numbers of the newest 4,096.
///
/// Rows are only added to these, so two states that are equal hold the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::FromRow)]
pub(crate) struct OutboxState {
    newest: i64,
    sum: i64,
}

impl OutboxState {
    /// The digest: the same on every replica of one version, which is as far as it has to agree.
    pub(crate) fn generation(self) -> Generation {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Generation(hasher.finish())
    }
}

/// The subquery that gives one row with the columns of [`OutboxState`]. The rows that it reads are those of
/// [`crate::outbox::ROWS_KEPT`], which are never pruned.
macro_rules! outbox_state {
    () => {
        "(SELECT coalesce(max(seq), 0) AS newest, coalesce(sum(seq), 0)::bigint AS sum FROM search_changes
          WHERE seq > (SELECT coalesce(max(seq), 0) FROM search_changes) - 4096)"
    };
}
pub(crate) use outbox_state;

const _: () = assert!(crate::outbox::ROWS_KEPT == 4_096, "outbox_state! names the number");

impl Store {
    /// The present generation of the catalogue: another one after every change of what lists and details show.
    ///
    /// It is a digest of the newest 4,096 rows of the outbox, by their numbers: of more than the newest, since a
    /// row may become visible after one with a higher number.
    pub async fn generation(&self) -> Result<Generation, ReadError> {
        self.lookup("read generation", |mut lease| async move {
            let state: OutboxState = sqlx::query_as(concat!("SELECT * FROM ", outbox_state!(), " AS state"))
                .fetch_one(lease.connection())
                .await?;
            Ok(state.generation())
        })
        .await
    }
}
