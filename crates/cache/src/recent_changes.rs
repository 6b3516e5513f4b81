//! What has changed in the catalogue lately: shows which entries are current.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use ahash::RandomState;
use chart_index_domain::{CatalogueChange, CataloguePoll, Lineage, Origin, Position};

use crate::CacheKey;
use crate::clock::{self, Now, real_ms};
use crate::key::{EntityName, name_of};
use crate::sync::{AtomicU64, Ordering, PoisonError, RwLock, RwLockReadGuard};
use crate::version::Version;

/// The last known position of the catalogue, and what has changed up to it.
///
/// It knows the last changes of up to 131,072 entities, in at most 16 MB; after its first poll, those that the
/// poll found. Of entries from before that it cannot show that they are current.
pub struct RecentChanges {
    /// The last known [`Version`].
    current: AtomicU64,
    /// Until when entries can be shown to be current, by [`real_ms`]; zero if they cannot.
    confirmed_until_ms: AtomicU64,
    changes: RwLock<Changes>,
}

/// Whether an entry has the state of the catalogue that is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Currency {
    /// It has, apart from changes of the last seconds.
    Current,
    /// What it shows has changed since; for lists and pages, something in the catalogue has.
    Changed,
    /// An operator has removed what it shows since; for lists and pages, something in the catalogue.
    Removed,
    /// It cannot be shown.
    Unknown,
}

/// How long a poll shows what is current, of the five seconds within which a removal is in force (docs/api.md,
/// "ROX file").
const MAX_SILENCE: Duration = Duration::from_secs(3);

impl RecentChanges {
    /// Without a poll, nothing is known.
    #[must_use]
    pub fn new() -> Self {
        clock::start();
        Self {
            current: AtomicU64::new(Version::UNKNOWN.bits()),
            confirmed_until_ms: AtomicU64::new(0),
            changes: RwLock::default(),
        }
    }

    /// Applies a poll that began at this time. Each poll must ask for the changes after the last one that was
    /// applied. One that arrives late adds what it found.
    pub fn apply(&self, poll: CataloguePoll, began: Instant) {
        let began_ms = real_ms(began);
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        let is_late = began_ms < changes.last_poll_ms;
        if is_late && changes.origin != Some(poll.position.origin) {
            return;
        }
        changes.apply(poll);
        // In this order, and read in the opposite one: the confirmation applies to the new version only.
        self.current.store(changes.version.bits(), Ordering::Release);
        if !is_late {
            changes.last_poll_ms = began_ms;
            let until_ms = began_ms + u64::try_from(MAX_SILENCE.as_millis()).unwrap_or(0);
            self.confirmed_until_ms.store(until_ms, Ordering::Release);
        }
    }

    /// Whether an entry is current, whose read began at this version. For a version that is the last known
    /// one, as those of most entries are, it only reads atomics.
    ///
    /// Of an entry of an earlier origin only removals are known: a server begins above all numbers that its
    /// lineage has assigned before, so its removals have higher numbers than the entry. An entry of another
    /// lineage, and one from before the first poll, is from before any removal.
    pub(crate) fn currency(&self, key: &CacheKey, version: Version, now: Now) -> Currency {
        let if_unchanged = if self.is_confirmed(now) { Currency::Current } else { Currency::Unknown };
        let current = self.version();
        if version.has_origin_of(current) && version >= current {
            return if_unchanged;
        }
        let changes = self.read();
        if version == Version::UNKNOWN || !version.is_from(changes.earlier) {
            return if changes.last_removal > 0 { Currency::Removed } else { Currency::Unknown };
        }
        let has_known_origin = version.has_origin_of(changes.version);
        let Some(entity) = key.entity() else {
            return if changes.last_removal > version.sequence() {
                Currency::Removed
            } else if has_known_origin {
                Currency::Changed
            } else {
                Currency::Unknown
            };
        };
        let last = changes.last_change(entity);
        let is_below_known = version.sequence() < changes.floor;
        if last.removal > version.sequence() || is_below_known && changes.last_removal > version.sequence() {
            Currency::Removed
        } else if !has_known_origin {
            Currency::Unknown
        } else if last.change > version.sequence() {
            Currency::Changed
        } else if is_below_known {
            Currency::Unknown
        } else {
            if_unchanged
        }
    }

    /// Whether entries can be shown to be current.
    pub(crate) fn is_confirmed(&self, now: Now) -> bool {
        now.real_ms < self.confirmed_until_ms.load(Ordering::Acquire)
    }

    /// The last known version. A read that begins now sees all of its changes.
    pub(crate) fn version(&self) -> Version {
        Version::from_bits(self.current.load(Ordering::Acquire))
    }

    /// The version of a position in the last known lineage; [`Version::UNKNOWN`] before the first poll.
    pub(crate) fn version_of(&self, position: Position) -> Version {
        self.read().version_of(position)
    }

    /// The version of a position that another replica knew; `None` if it is of another lineage.
    pub(crate) fn version_of_other(&self, known: Option<(Lineage, Position)>) -> Option<Version> {
        let changes = self.read();
        match (known, changes.lineage) {
            (Some((lineage, position)), Some(last)) => {
                (lineage == last).then(|| changes.version_of(position))
            }
            (None, _) | (_, None) => Some(Version::UNKNOWN),
        }
    }

    /// The position of a version with its lineage, if it is of the last known origin.
    pub(crate) fn position_of(&self, version: Version) -> Option<(Lineage, Position)> {
        let changes = self.read();
        let origin = changes.origin.filter(|_| version.has_origin_of(changes.version))?;
        Some((changes.lineage?, Position { origin, sequence: version.sequence() }))
    }

    /// The number of changes that are known.
    pub(crate) fn len(&self) -> usize {
        let changes = self.read();
        changes.newer.entities.len() + changes.older.entities.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Changes> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RecentChanges {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RecentChanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RecentChanges").field("version", &self.version()).finish_non_exhaustive()
    }
}

/// The changes of a lineage.
#[derive(Default)]
struct Changes {
    lineage: Option<Lineage>,
    /// The number of the earlier origins of the lineage.
    earlier: Version,
    origin: Option<Origin>,
    /// The last known version: all changes after [`floor`](Self::floor) up to it are known.
    version: Version,
    /// When the last poll began, by [`real_ms`].
    last_poll_ms: u64,
    floor: u64,
    /// The sequence of the last removal.
    last_removal: u64,
    newer: Generation,
    older: Generation,
}

/// The last changes of some entities. When the newer generation is full, it replaces the older one.
#[derive(Default)]
struct Generation {
    entities: HashMap<EntityName, LastChange, RandomState>,
    /// The highest sequence.
    last: u64,
}

/// The sequences of the last change and the last removal of an entity; 0 if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LastChange {
    change: u64,
    removal: u64,
}

impl LastChange {
    fn max(self, other: Self) -> Self {
        Self { change: self.change.max(other.change), removal: self.removal.max(other.removal) }
    }
}

/// The maximum number of entities in a generation.
const GENERATION: usize = 65_536;

impl Changes {
    fn apply(&mut self, poll: CataloguePoll) {
        let CataloguePoll { lineage, position, complete_after, last_removal, changes, .. } = poll;
        if self.lineage != Some(lineage) {
            let earlier = self.version.at_next_origin(0);
            *self = Self { lineage: Some(lineage), earlier, version: earlier, ..Self::default() };
        }
        let is_known_origin = self.origin == Some(position.origin);
        // A server that has not lost what is known here only adds to it.
        let continues = self.origin.is_some() && position.sequence >= self.version.sequence();
        if !is_known_origin && !continues {
            let Self { lineage, earlier, version, .. } = *self;
            *self = Self { lineage, earlier, version, ..Self::default() };
        }
        if self.origin.is_none() || complete_after > self.version.sequence() {
            self.floor = complete_after.min(position.sequence);
        }
        self.origin = Some(position.origin);
        self.last_removal = self.last_removal.max(last_removal);
        self.version = if is_known_origin {
            self.version.max(self.version.at(position.sequence))
        } else {
            self.version.at_next_origin(position.sequence)
        };
        for CatalogueChange { sequence, entity, last_removal } in changes {
            self.insert(name_of(entity), LastChange { change: sequence, removal: last_removal });
        }
    }

    fn insert(&mut self, entity: EntityName, change: LastChange) {
        if self.newer.entities.len() == GENERATION {
            mem::swap(&mut self.newer, &mut self.older);
            self.floor = self.floor.max(self.newer.last);
            self.newer.clear();
        }
        let last = self.newer.entities.entry(entity).or_default();
        *last = change.max(*last);
        self.newer.last = change.change.max(self.newer.last);
    }

    fn version_of(&self, position: Position) -> Version {
        let is_known_origin = self.origin == Some(position.origin);
        if is_known_origin { self.version } else { self.earlier }.at(position.sequence)
    }

    fn last_change(&self, entity: &EntityName) -> LastChange {
        let change_in =
            |generation: &Generation| generation.entities.get(entity).copied().unwrap_or_default();
        change_in(&self.newer).max(change_in(&self.older))
    }
}

impl Generation {
    fn clear(&mut self) {
        self.entities.clear();
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{ChartsetId, Entity, NoteHash};

    use super::*;
    use crate::Clock;

    const ORIGIN: Origin = Origin(1);
    const LINEAGE: Lineage = Lineage::from_bytes([1; 8]);

    fn chart(number: u64) -> Entity {
        Entity::Chart(NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
    }

    fn lookup(number: u64) -> CacheKey {
        let Entity::Chart(hash) = chart(number) else { unreachable!() };
        CacheKey::lookup(hash)
    }

    fn position(origin: Origin, sequence: u64) -> Position {
        Position { origin, sequence }
    }

    fn poll(sequence: u64, changes: &[(u64, Entity)]) -> CataloguePoll {
        let change_of = |&(sequence, entity): &_| CatalogueChange { sequence, entity, last_removal: 0 };
        let changes = changes.iter().map(change_of).collect();
        let (lineage, position) = (LINEAGE, position(ORIGIN, sequence));
        CataloguePoll { lineage, position, last_removal: 0, changes, complete_after: 0 }
    }

    fn now_after(by: Duration) -> Now {
        let now = Clock::default().now();
        Now { real_ms: now.real_ms + u64::try_from(by.as_millis()).unwrap(), ..now }
    }

    fn currency(changes: &RecentChanges, number: u64, version: Version) -> Currency {
        changes.currency(&lookup(number), version, now_after(Duration::ZERO))
    }

    fn position_before_restart() -> Position {
        position(ORIGIN, 10)
    }

    /// What is known after a first poll with sequence 10, and this version.
    fn known() -> (RecentChanges, Version) {
        let changes = RecentChanges::new();
        changes.apply(poll(10, &[]), Instant::now());
        let version = changes.version();
        (changes, version)
    }

    #[test]
    fn only_changed_entities_change() {
        let (changes, version) = known();
        let set = ChartsetId::from_bytes([7; 8]);
        changes.apply(poll(13, &[(11, chart(1)), (13, Entity::Chartset(set))]), Instant::now());
        let later = version.at(11);
        let Entity::Chart(hash) = chart(1) else { unreachable!() };
        for (key, version, expected) in [
            (CacheKey::lookup(hash), version, Currency::Changed),
            (CacheKey::rox(hash), version, Currency::Changed),
            (CacheKey::preview(hash), version, Currency::Changed),
            (CacheKey::lookup(hash), later, Currency::Current),
            (lookup(2), version, Currency::Current),
            (CacheKey::detail(set), later, Currency::Changed),
            (CacheKey::source(set), later, Currency::Changed),
            (CacheKey::source(set), version.at(13), Currency::Current),
            (CacheKey::list(b""), later, Currency::Changed),
            (CacheKey::page(b""), later, Currency::Changed),
            (CacheKey::list(b""), version.at(13), Currency::Current),
            // From a replica whose poll was later.
            (CacheKey::lookup(hash), version.at(20), Currency::Current),
            (CacheKey::list(b""), version.at(20), Currency::Current),
        ] {
            assert_eq!(
                changes.currency(&key, version, now_after(Duration::ZERO)),
                expected,
                "{key:?} {version:?}"
            );
        }
        assert_eq!(changes.len(), 2);
    }

    #[test]
    fn removals_are_told_from_changes() {
        let (changes, version) = known();
        let removal = CatalogueChange { sequence: 11, entity: chart(1), last_removal: 11 };
        let found = CataloguePoll { changes: vec![removal], last_removal: 11, ..poll(11, &[]) };
        changes.apply(found, Instant::now());
        let of = |key: CacheKey| changes.currency(&key, version, now_after(Duration::ZERO));
        assert_eq!([of(lookup(1)), of(lookup(2))], [Currency::Removed, Currency::Current]);
        assert_eq!(of(CacheKey::list(b"")), Currency::Removed, "it may contain the chart");
        let after = version.at(11);
        changes.apply(poll(12, &[(12, chart(1))]), Instant::now());
        assert_eq!(currency(&changes, 1, after), Currency::Changed, "restored");
        assert_eq!(currency(&changes, 1, version), Currency::Removed, "from before");
        let list = changes.currency(&CacheKey::list(b""), after, now_after(Duration::ZERO));
        assert_eq!(list, Currency::Changed);
    }

    #[test]
    fn removals_after_a_restart_are_known_of_earlier_entries() {
        let (changes, version) = known();
        let restarted = CataloguePoll { position: position(Origin(2), 1_000), ..poll(0, &[]) };
        changes.apply(restarted.clone(), Instant::now());
        let of = |key: CacheKey| changes.currency(&key, version, now_after(Duration::ZERO));
        assert_eq!(of(CacheKey::list(b"")), Currency::Unknown);
        let removal = CatalogueChange { sequence: 1_001, entity: chart(1), last_removal: 1_001 };
        let position = position(Origin(2), 1_001);
        let found = CataloguePoll { position, last_removal: 1_001, changes: vec![removal], ..restarted };
        changes.apply(found, Instant::now());
        assert_eq!(of(CacheKey::list(b"")), Currency::Removed);
        assert_eq!([of(lookup(1)), of(lookup(2))], [Currency::Removed, Currency::Unknown]);
        let unread = changes.version_of(position_before_restart());
        assert_eq!(currency(&changes, 1, unread), Currency::Removed, "of another replica");
        assert_eq!(currency(&changes, 2, unread), Currency::Unknown);
        assert_eq!(currency(&changes, 2, Version::UNKNOWN), Currency::Removed, "from before the first poll");
    }

    #[test]
    fn removals_before_a_restart_are_known_of_earlier_entries() {
        let (changes, version) = known();
        let removal = CatalogueChange { sequence: 11, entity: chart(1), last_removal: 11 };
        let found = CataloguePoll { changes: vec![removal], last_removal: 11, ..poll(11, &[]) };
        changes.apply(found, Instant::now());
        let later = version.at(11);
        let restarted = position(Origin(2), 1_000);
        let restarted =
            CataloguePoll { last_removal: 11, complete_after: 11, position: restarted, ..poll(0, &[]) };
        changes.apply(restarted, Instant::now());
        assert_eq!(
            [version, later].map(|version| currency(&changes, 1, version)),
            [Currency::Removed, Currency::Unknown]
        );
        assert_eq!(currency(&changes, 2, version), Currency::Unknown, "it may be served during an outage");
        let list = |version| changes.currency(&CacheKey::list(b""), version, now_after(Duration::ZERO));
        assert_eq!([list(version), list(later)], [Currency::Removed, Currency::Unknown]);
    }

    #[test]
    fn entries_of_another_lineage_are_from_before_any_removal() {
        let (changes, version) = known();
        let other = Some((LINEAGE, position(ORIGIN, 10)));
        assert_eq!(changes.version_of_other(other), Some(version));
        let lineage = Lineage::from_bytes([2; 8]);
        let position = position(Origin(2), 3);
        let restored = CataloguePoll { lineage, position, ..poll(3, &[]) };
        changes.apply(restored.clone(), Instant::now());
        assert_eq!(changes.version_of_other(other), None, "of another replica");
        assert_eq!(changes.version_of_other(None), Some(Version::UNKNOWN));
        assert_eq!(currency(&changes, 1, version), Currency::Unknown, "nothing was removed");
        let removal = CatalogueChange { sequence: 4, entity: chart(1), last_removal: 4 };
        let position = Position { sequence: 4, ..position };
        let removed = CataloguePoll { position, last_removal: 4, changes: vec![removal], ..restored };
        changes.apply(removed, Instant::now());
        assert_eq!(currency(&changes, 2, version), Currency::Removed);
        let list = changes.currency(&CacheKey::list(b""), version, now_after(Duration::ZERO));
        assert_eq!(list, Currency::Removed);
        assert_eq!(currency(&changes, 2, changes.version()), Currency::Current);
    }

    #[test]
    fn nothing_is_current_without_recent_polls() {
        let changes = RecentChanges::new();
        assert_eq!(currency(&changes, 1, Version::UNKNOWN), Currency::Unknown, "no poll");
        assert_eq!(changes.version_of(position(ORIGIN, 0)), Version::UNKNOWN);
        let (changes, version) = known();
        let silence = |by| changes.currency(&lookup(1), version, now_after(by));
        assert_eq!(silence(Duration::from_millis(2_900)), Currency::Current);
        assert_eq!(silence(Duration::from_secs(3)), Currency::Unknown);
        changes.apply(poll(11, &[(11, chart(1))]), Instant::now());
        assert_eq!(silence(Duration::from_mins(1)), Currency::Changed, "that is known without polls");
    }

    #[test]
    fn versions_of_another_origin_are_unknown() {
        let (changes, first) = known();
        let other = Origin(2);
        let missed = CataloguePoll { position: position(other, 9), complete_after: 9, ..poll(9, &[]) };
        changes.apply(missed, Instant::now());
        assert_eq!(currency(&changes, 1, first), Currency::Unknown);
        assert_eq!(currency(&changes, 1, first.at(1_000)), Currency::Unknown, "whatever its sequence");
        assert_eq!(changes.position_of(first), None);
        let second = changes.version_of(position(other, 9));
        assert_eq!(currency(&changes, 1, second), Currency::Current);
        assert_eq!(changes.position_of(second), Some((LINEAGE, position(other, 9))));
        assert_eq!(currency(&changes, 1, second.at(8)), Currency::Unknown, "from before the first poll");
        // The first origin is a new one when it returns: its changes were missed in the meantime.
        changes.apply(poll(10, &[]), Instant::now());
        assert_eq!(currency(&changes, 1, first), Currency::Unknown);
        assert_eq!(currency(&changes, 1, changes.version()), Currency::Current);
    }

    #[test]
    fn first_poll_may_lack_the_first_changes() {
        let changes = RecentChanges::new();
        let found = [(6, chart(1)), (10, chart(2))];
        changes.apply(CataloguePoll { complete_after: 5, ..poll(10, &found) }, Instant::now());
        let version = changes.version();
        for (key, sequence, expected) in [
            (lookup(3), 4, Currency::Unknown),
            (lookup(3), 5, Currency::Current),
            (lookup(1), 4, Currency::Changed),
            (lookup(1), 5, Currency::Changed),
            (lookup(1), 6, Currency::Current),
            (CacheKey::list(b""), 4, Currency::Changed),
            (CacheKey::list(b""), 5, Currency::Changed),
        ] {
            let currency = changes.currency(&key, version.at(sequence), now_after(Duration::ZERO));
            assert_eq!(currency, expected, "{key:?} at {sequence}");
        }
    }

    #[test]
    fn missed_changes_leave_older_versions_unknown() {
        let (changes, version) = known();
        changes.apply(poll(11, &[(11, chart(1))]), Instant::now());
        let found = CataloguePoll { complete_after: 80_000, ..poll(90_000, &[(90_000, chart(2))]) };
        changes.apply(found, Instant::now());
        assert_eq!(currency(&changes, 3, version.at(79_999)), Currency::Unknown);
        assert_eq!(currency(&changes, 3, version.at(80_000)), Currency::Current);
        assert_eq!(currency(&changes, 2, version.at(80_000)), Currency::Changed);
        assert_eq!(currency(&changes, 1, version), Currency::Changed, "that is still known");
    }

    #[test]
    fn late_poll_adds_what_it_found() {
        let (changes, version) = known();
        let (earlier, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        changes.apply(poll(12, &[(12, chart(1))]), later);
        changes.apply(poll(11, &[(11, chart(1)), (11, chart(2))]), earlier);
        assert_eq!(changes.version(), version.at(12), "versions never decrease");
        assert_eq!(currency(&changes, 1, version.at(11)), Currency::Changed);
        assert_eq!(currency(&changes, 2, version), Currency::Changed);
        let in_3_s = now_after(Duration::from_millis(3_500));
        assert_eq!(
            changes.currency(&lookup(3), version, in_3_s),
            Currency::Current,
            "as the later poll says"
        );
        let other = position(Origin(2), 20);
        changes.apply(CataloguePoll { position: other, ..poll(20, &[]) }, earlier);
        assert_eq!(changes.version(), version.at(12), "a later poll did not reach this origin");
    }

    #[test]
    fn oldest_generation_is_dropped() {
        let (changes, version) = known();
        let size = u64::try_from(GENERATION).unwrap();
        let mut sequence = 10;
        for _ in 0..5 {
            for _ in 0..size / 8_192 {
                let found: Vec<_> =
                    (sequence + 1..=sequence + 8_192).map(|number| (number, chart(number))).collect();
                sequence += 8_192;
                changes.apply(poll(sequence, &found), Instant::now());
            }
        }
        assert_eq!(changes.len(), 2 * GENERATION);
        let floor = sequence - 2 * size;
        assert_eq!(currency(&changes, floor + 1, version.at(floor)), Currency::Changed, "the oldest known");
        assert_eq!(currency(&changes, 1, version.at(floor)), Currency::Current);
        assert_eq!(currency(&changes, 1, version.at(floor - 1)), Currency::Unknown);
        assert_eq!(currency(&changes, floor + 1, version.at(sequence)), Currency::Current);

        // An entity whose change was dropped, but which has changed again.
        changes.apply(poll(sequence + 1, &[(sequence + 1, chart(floor + 1))]), Instant::now());
        assert_eq!(currency(&changes, floor + 1, version.at(floor + 1)), Currency::Changed);

        let known = changes.read();
        let bytes = |generation: &Generation| {
            // hashbrown has a byte for each bucket, and fills seven of eight.
            let buckets = (generation.entities.capacity() * 8 / 7).next_power_of_two();
            buckets * (size_of::<(EntityName, LastChange)>() + 1)
        };
        let total = bytes(&known.newer) + bytes(&known.older);
        assert!((8_000_000..16_000_000).contains(&total), "{total} bytes");
    }
}
