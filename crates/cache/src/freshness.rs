//! Decides how fresh an entry is: by its age, and by whether an invalidation of it may have been missed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chart_index_domain::search::DatabaseIdentity;

use crate::clock::{CoarseInstant, Now};
use crate::database_tracker::DatabaseTracker;
use crate::generation::{GenerationTracker, LocalGenerationId};
use crate::{CacheKey, CatalogueStatusSource, Lifetimes};

/// When an entry was read from the store, and when it was last confirmed to be current. Both are the *start* of
/// the read, since a read may miss what changes while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamps {
    pub(crate) read_at: CoarseInstant,
    pub(crate) checked_at: CoarseInstant,
    /// The generation of the catalogue as it was known when the read started.
    pub(crate) generation: LocalGenerationId,
}

impl Timestamps {
    /// The timestamps without padding, which would add to every entry of an unknown hash.
    pub(crate) fn to_bytes(self) -> [u8; 11] {
        let mut bytes = [0; 11];
        bytes[..4].copy_from_slice(&self.read_at.bits().to_le_bytes());
        bytes[4..8].copy_from_slice(&self.checked_at.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.generation.to_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 11]) -> Self {
        let (mut read_at, mut checked_at, mut generation) = ([0; 4], [0; 4], [0; 3]);
        read_at.copy_from_slice(&bytes[..4]);
        checked_at.copy_from_slice(&bytes[4..8]);
        generation.copy_from_slice(&bytes[8..]);
        Self {
            read_at: CoarseInstant::from_bits(u32::from_le_bytes(read_at)),
            checked_at: CoarseInstant::from_bits(u32::from_le_bytes(checked_at)),
            generation: LocalGenerationId::from_bytes(generation),
        }
    }
}

/// How an entry may be used. To revalidate means a full new read: the store has no conditional reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Serve it (RFC 9111, section 4.2).
    Fresh,
    /// Serve it, and refresh it in the background: `stale-while-revalidate` (RFC 5861, section 3).
    Stale,
    /// Read it again first, and serve it only if that fails: `stale-if-error` (RFC 5861, section 4). Unlike
    /// under the directive `must-revalidate`, it is served on errors.
    MustRevalidate,
    /// Do not serve it: it is too old even for `stale-if-error`.
    Expired,
}

/// Tracks whether this replica receives invalidations, and decides how fresh entries are.
#[derive(Debug)]
pub(crate) struct FreshnessTracker {
    /// When listening was last confirmed, in milliseconds plus one; zero for never. In real time, which a test
    /// cannot advance.
    confirmed_ms: AtomicU64,
    /// When listening started, as [`CoarseInstant::bits`]. Invalidations from before may have been missed.
    listening_since: AtomicU32,
    /// The seed of this replica for [`jittered`](Self::jittered).
    seed: u8,
    /// The generation of the catalogue, which shows what is current without any invalidation.
    pub(crate) generations: GenerationTracker,
    /// Since when the catalogue is in its database: what was read from another one may be of a state that is
    /// lost.
    database: DatabaseTracker,
}

/// A listener that was not confirmed for this long may be disconnected.
const LISTENING_TIMEOUT: Duration = Duration::from_secs(2);
/// While not listening, entries are served for this long after they were checked. With [`LISTENING_TIMEOUT`]
/// this makes up the five seconds within which a removal takes effect everywhere (docs/api.md, "ROX file").
const MAX_UNCHECKED: Duration = Duration::from_secs(3);

impl FreshnessTracker {
    pub(crate) fn new(catalogue: Option<CatalogueStatusSource>) -> Self {
        Self {
            confirmed_ms: AtomicU64::new(0),
            listening_since: AtomicU32::new(0),
            seed: fastrand::u8(..),
            generations: GenerationTracker::new(catalogue),
            database: DatabaseTracker::default(),
        }
    }

    /// When a record that was just read from Redis counts as checked: now, unless it was read from another
    /// database.
    pub(crate) fn record_checked_at(&self, database: Option<DatabaseIdentity>, now: Now) -> CoarseInstant {
        self.database.follow(&self.generations, now);
        self.database.record_checked_at(database, now)
    }

    /// Records that listening starts now. Entries that were checked before must be revalidated.
    pub(crate) fn start_listening(&self, now: Now) {
        self.listening_since.store(now.coarse.bits(), Ordering::Relaxed);
        self.confirm_listening(now);
    }

    /// Records that invalidations are received at this time.
    pub(crate) fn confirm_listening(&self, now: Now) {
        self.confirmed_ms.store(now.real_ms + 1, Ordering::Release);
    }

    /// Whether an invalidation at this time would be received.
    pub(crate) fn is_listening(&self, now: Now) -> bool {
        let confirmed_ms = self.confirmed_ms.load(Ordering::Acquire);
        let silence_ms = (now.real_ms + 1).saturating_sub(confirmed_ms);
        confirmed_ms > 0 && u128::from(silence_ms) <= LISTENING_TIMEOUT.as_millis()
    }

    /// How fresh an entry is.
    pub(crate) fn freshness(
        &self,
        key: &CacheKey,
        timestamps: Timestamps,
        lifetimes: &Lifetimes,
        now: Now,
    ) -> Freshness {
        self.database.follow(&self.generations, now);
        let age = now.coarse.since(timestamps.read_at);
        let since_check = now.coarse.since(timestamps.checked_at);
        let jittered = |age| self.jittered(key, age);
        if age >= lifetimes.expire_after {
            Freshness::Expired
        } else if age >= jittered(lifetimes.revalidate_after)
            || self.may_be_outdated(since_check, now) && !self.is_unchanged(timestamps)
        {
            Freshness::MustRevalidate
        } else if age >= jittered(lifetimes.stale_after)
            || since_check >= jittered(lifetimes.recheck_after) && !self.is_unchanged(timestamps)
        {
            Freshness::Stale
        } else {
            Freshness::Fresh
        }
    }

    /// Whether the catalogue was still in the generation of the entry a moment ago. Then the entry is current
    /// without any invalidation: no change was committed between the two reads of the generation, and the first
    /// of them came before the read of the entry.
    fn is_unchanged(&self, timestamps: Timestamps) -> bool {
        self.generations
            .time_since_confirmed(timestamps.generation)
            .is_some_and(|since| since <= MAX_UNCHECKED)
    }

    /// Whether an entry may have been invalidated, or be of a database that was replaced since.
    fn may_be_outdated(&self, since_check: Duration, now: Now) -> bool {
        self.may_have_missed_invalidation(since_check, now) || self.database.changed_within(since_check, now)
    }

    fn may_have_missed_invalidation(&self, since_check: Duration, now: Now) -> bool {
        if !self.is_listening(now) {
            return since_check > MAX_UNCHECKED;
        }
        let listening_since = CoarseInstant::from_bits(self.listening_since.load(Ordering::Relaxed));
        since_check >= now.coarse.since(listening_since)
    }

    /// A lifetime, varied by up to a tenth.
    pub(crate) fn jittered(&self, key: &CacheKey, age: Duration) -> Duration {
        let random = u32::from(key.spread() ^ self.seed);
        age * (922 + random * 204 / 255) / 1024
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use chart_index_domain::NoteHash;
    use chart_index_domain::search::Generation;

    use super::*;
    use crate::{CatalogueStatus, Clock, LifetimesByKind};

    const KEY: CacheKey = CacheKey::lookup(NoteHash::from_bytes([3; 32]));

    fn timestamps(read_at: CoarseInstant, checked_at: CoarseInstant) -> Timestamps {
        Timestamps { read_at, checked_at, generation: LocalGenerationId::UNKNOWN }
    }

    fn status_of(generation: u64, database: u64) -> CatalogueStatus {
        let (generation, database) = (Generation(generation), DatabaseIdentity(database));
        CatalogueStatus { generation, database, read_at: Instant::now() }
    }

    #[test]
    fn entries_of_another_database_are_revalidated() {
        let status = Arc::new(Mutex::new(None));
        let source = {
            let status = Arc::clone(&status);
            CatalogueStatusSource::new(move || *status.lock().unwrap())
        };
        let (clock, tracker) = (Clock::default(), FreshnessTracker::new(Some(source)));
        let lifetimes = LifetimesByKind::default().lookup;
        let tick = Duration::from_millis(10);
        let freshness = |timestamps| tracker.freshness(&KEY, timestamps, &lifetimes, clock.now());
        let record = |database: Option<u64>| {
            let now = clock.now();
            timestamps(now.coarse, tracker.record_checked_at(database.map(DatabaseIdentity), now))
        };
        tracker.start_listening(clock.now());
        clock.advance(tick);
        let unknown = record(Some(1));
        assert_eq!(freshness(unknown), Freshness::Fresh, "no database is known");

        *status.lock().unwrap() = Some(status_of(1, 1));
        clock.advance(tick);
        assert_eq!(freshness(unknown), Freshness::MustRevalidate);
        let (own, foreign, unmarked) = (record(Some(1)), record(Some(2)), record(None));
        clock.advance(tick);
        assert_eq!(
            [own, foreign, unmarked].map(freshness),
            [Freshness::Fresh, Freshness::MustRevalidate, Freshness::MustRevalidate]
        );
        let generation = tracker.generations.local_id_of(Some(Generation(1)));
        let same_generation = Timestamps { generation, ..own };

        *status.lock().unwrap() = Some(status_of(1, 2));
        clock.advance(tick);
        assert_eq!(freshness(own), Freshness::MustRevalidate);
        assert_eq!(freshness(same_generation), Freshness::Fresh, "nothing was lost");
        clock.advance(tick);
        assert_eq!(freshness(record(Some(2))), Freshness::Fresh);
        assert_eq!(freshness(record(Some(1))), Freshness::MustRevalidate);
    }

    #[test]
    fn unchanged_catalogue_replaces_invalidations() {
        let status = Arc::new(Mutex::new(status_of(1, 1)));
        let source = {
            let status = Arc::clone(&status);
            CatalogueStatusSource::new(move || Some(*status.lock().unwrap()))
        };
        let (clock, tracker) = (Clock::default(), FreshnessTracker::new(Some(source)));
        let lifetimes = LifetimesByKind::default().lookup;
        let generation = tracker.generations.local_id_of(Some(Generation(1)));
        let current = Timestamps { generation, ..timestamps(clock.now().coarse, clock.now().coarse) };
        clock.advance(Duration::from_mins(1));
        let freshness = || tracker.freshness(&KEY, current, &lifetimes, clock.now());
        assert_eq!(freshness(), Freshness::Fresh, "also after the time of a recheck");
        let unknown = Timestamps { generation: LocalGenerationId::UNKNOWN, ..current };
        assert_eq!(tracker.freshness(&KEY, unknown, &lifetimes, clock.now()), Freshness::MustRevalidate);
        tracker.start_listening(clock.now());
        assert_eq!(freshness(), Freshness::Fresh, "whenever listening started");

        status.lock().unwrap().read_at = Instant::now().checked_sub(Duration::from_millis(3_100)).unwrap();
        assert_eq!(freshness(), Freshness::MustRevalidate, "confirmed too long ago");
        *status.lock().unwrap() = status_of(2, 1);
        assert_eq!(freshness(), Freshness::MustRevalidate, "changed");
        *status.lock().unwrap() = status_of(1, 1);
        clock.advance(Duration::from_mins(12));
        let read_again =
            Timestamps { generation: tracker.generations.local_id_of(Some(Generation(1))), ..current };
        assert_eq!(
            tracker.freshness(&KEY, read_again, &lifetimes, clock.now()),
            Freshness::Stale,
            "but refreshed at its age"
        );
    }

    #[test]
    fn entry_ages_from_fresh_to_expired() {
        let (clock, tracker) = (Clock::default(), FreshnessTracker::new(None));
        let lifetimes = LifetimesByKind::default().lookup;
        tracker.start_listening(clock.now());
        clock.advance(Duration::from_hours(48));
        let now = clock.now();
        for (read_s, checked_s, expected) in [
            (0, 0, Freshness::Fresh),
            (500, 26, Freshness::Fresh),
            (500, 34, Freshness::Stale),
            (670, 0, Freshness::Stale),
            (4_000, 0, Freshness::MustRevalidate),
            (86_400, 0, Freshness::Expired),
        ] {
            let ago = |seconds| now.coarse.before(Duration::from_secs(seconds));
            let timestamps = timestamps(ago(read_s), ago(checked_s));
            assert_eq!(
                tracker.freshness(&KEY, timestamps, &lifetimes, now),
                expected,
                "{read_s} s, {checked_s} s"
            );
        }
    }

    #[test]
    fn listening_revalidates_earlier_entries() {
        let (clock, tracker) = (Clock::default(), FreshnessTracker::new(None));
        let lifetimes = LifetimesByKind::default().lookup;
        let timestamps_now = || timestamps(clock.now().coarse, clock.now().coarse);
        let freshness = |timestamps| tracker.freshness(&KEY, timestamps, &lifetimes, clock.now());
        let unconfirmed = timestamps_now();
        assert_eq!(freshness(unconfirmed), Freshness::Fresh, "for three seconds");
        clock.advance(Duration::from_millis(3_100));
        assert_eq!(freshness(unconfirmed), Freshness::MustRevalidate);
        let before = timestamps_now();
        tracker.start_listening(clock.now());
        clock.advance(Duration::from_millis(20));
        assert_eq!(freshness(before), Freshness::MustRevalidate);
        assert_eq!(freshness(timestamps_now()), Freshness::Fresh);
    }

    #[test]
    fn lifetimes_vary_by_up_to_a_tenth() {
        let tracker = FreshnessTracker::new(None);
        let varied: Vec<_> = (0..=255)
            .map(|byte| {
                let mut name = [0; 32];
                name[31] = byte;
                tracker
                    .jittered(&CacheKey::lookup(NoteHash::from_bytes(name)), Duration::from_secs(1_000))
                    .as_secs()
            })
            .collect();
        assert_eq!((*varied.iter().min().unwrap(), *varied.iter().max().unwrap()), (900, 1_099));
    }
}
