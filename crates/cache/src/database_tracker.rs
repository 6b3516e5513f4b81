//! Notices that the catalogue is in another database than before: after a restore, or a failover.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chart_index_domain::search::DatabaseIdentity;

use crate::clock::{CoarseInstant, Now};
use crate::generation::GenerationTracker;

/// The database of the catalogue, and since when it is known.
#[derive(Debug, Default)]
pub(crate) struct DatabaseTracker {
    /// The tick of the last call of [`follow`](Self::follow), plus one. Hits are frequent, so calls within the
    /// same tick do nothing.
    followed_at: AtomicU32,
    /// When this database was first seen, as [`CoarseInstant::bits`] plus one; zero before the first one.
    since: AtomicU64,
    current: Mutex<Option<DatabaseIdentity>>,
}

/// One tick of the clock: entries that were checked within it count as checked before the database was seen.
const TICK: Duration = Duration::from_millis(10);

impl DatabaseTracker {
    /// Checks whether the catalogue is in another database now.
    pub(crate) fn follow(&self, generations: &GenerationTracker, now: Now) {
        let tick = now.coarse.bits().wrapping_add(1);
        if self.followed_at.load(Ordering::Relaxed) == tick {
            return;
        }
        self.followed_at.store(tick, Ordering::Relaxed);
        let Some(seen) = generations.current() else { return };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current != Some(seen.database) {
            *current = Some(seen.database);
            self.since.store(u64::from(now.coarse.bits()) + 1, Ordering::Relaxed);
        }
    }

    /// Whether an entry that was checked this long ago was checked before this database was seen.
    pub(crate) fn changed_within(&self, since_check: Duration, now: Now) -> bool {
        self.since().is_some_and(|since| since_check > now.coarse.since(since))
    }

    /// When a record from Redis with this database counts as checked: now, or before this database was seen.
    /// While no database is known, every record counts.
    pub(crate) fn record_checked_at(&self, database: Option<DatabaseIdentity>, now: Now) -> CoarseInstant {
        let current = *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match self.since() {
            Some(since) if current != database => since.before(TICK),
            _ => now.coarse,
        }
    }

    fn since(&self) -> Option<CoarseInstant> {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        u32::try_from(since).ok().map(CoarseInstant::from_bits)
    }
}
