//! Decides how fresh an entry is: by its age, and by whether it can be shown to be current.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Now;
use crate::recent_changes::{Currency, RecentChanges};
use crate::version::Version;
use crate::{CacheKey, Lifetimes};

/// What was known when the read of an entry from the store began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamps {
    /// In milliseconds, see [`Now::ms`].
    pub(crate) read_at_ms: i64,
    /// The read sees every change up to this version.
    pub(crate) version: Version,
}

/// How an entry may be used, from the best to the worst. To revalidate means a full new read: the store has no
/// conditional reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Freshness {
    /// Serve it (RFC 9111, section 4.2).
    Fresh,
    /// Serve it, and refresh it in the background: `stale-while-revalidate` (RFC 5861, section 3).
    Stale,
    /// Read it again first, and serve it only if that fails: `stale-if-error` (RFC 5861, section 4). Unlike
    /// under the directive `must-revalidate`, it is served on errors.
    MustRevalidate,
    /// Do not serve it: it is too old even for `stale-if-error`, or an operator has removed what it shows.
    Expired,
}

/// Decides how fresh entries are.
#[derive(Debug)]
pub(crate) struct FreshnessRules {
    pub(crate) changes: Arc<RecentChanges>,
    pub(crate) lifetimes: Lifetimes,
    /// The seed of this replica for [`jittered`](Self::jittered).
    seed: u8,
}

/// How long an entry is fresh that cannot be shown to be current.
pub(crate) const FRESH_IF_UNKNOWN: Duration = Duration::from_secs(3);
/// How long a list or page is fresh from before a change.
const LIST_FRESH_IF_CHANGED: Duration = Duration::from_secs(1);
/// How long such a list or page may be served while it is refreshed.
const LIST_STALE_IF_CHANGED: Duration = Duration::from_secs(2);

impl FreshnessRules {
    pub(crate) fn new(changes: Option<Arc<RecentChanges>>, lifetimes: Lifetimes) -> Self {
        Self { changes: changes.unwrap_or_default(), lifetimes, seed: fastrand::u8(..) }
    }

    /// How fresh an entry is.
    pub(crate) fn freshness(&self, key: &CacheKey, timestamps: Timestamps, now: Now) -> Freshness {
        let age = now.since(timestamps.read_at_ms);
        if age >= self.lifetimes.expire_after {
            return Freshness::Expired;
        }
        let is_list = key.entity().is_none();
        let (fresh, stale, then) = match self.changes.currency(key, timestamps.version, now) {
            Currency::Current => {
                (self.jittered(key, self.lifetimes.stale_after), Duration::MAX, Freshness::Stale)
            }
            // Also of a list that was just read: the search engine may lag behind the removal.
            Currency::Removed if is_list => {
                (LIST_FRESH_IF_CHANGED, LIST_STALE_IF_CHANGED, Freshness::Expired)
            }
            Currency::Changed | Currency::Unknown if is_list => {
                (LIST_FRESH_IF_CHANGED, LIST_STALE_IF_CHANGED, Freshness::MustRevalidate)
            }
            Currency::Removed => return Freshness::Expired,
            Currency::Changed => return Freshness::MustRevalidate,
            Currency::Unknown => (FRESH_IF_UNKNOWN, FRESH_IF_UNKNOWN, Freshness::MustRevalidate),
        };
        match age {
            age if age < fresh => Freshness::Fresh,
            age if age < stale => Freshness::Stale,
            _ => then,
        }
    }

    /// Whether the response of a read that began at this version may be served to a request that comes now.
    pub(crate) fn may_join(&self, key: &CacheKey, version: Version, now: Now) -> bool {
        matches!(self.changes.currency(key, version, now), Currency::Current | Currency::Unknown)
    }

    /// A lifetime, varied by up to a tenth.
    pub(crate) fn jittered(&self, key: &CacheKey, age: Duration) -> Duration {
        let random = u32::from(key.shard_byte() ^ self.seed);
        age * (922 + random * 204 / 255) / 1024
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use chart_index_domain::{CatalogueChange, CataloguePoll, Entity, Lineage, NoteHash, Origin, Position};

    use super::*;
    use crate::Clock;

    const HASH: NoteHash = NoteHash::from_bytes([3; 32]);

    /// A poll that confirms what is known for the rest of the test.
    fn apply(rules: &FreshnessRules, sequence: u64, entities: &[(Entity, bool)]) {
        let position = Position { origin: Origin(1), sequence };
        let change = |&(entity, is_removal): &(_, bool)| {
            let last_removal = if is_removal { sequence } else { 0 };
            CatalogueChange { sequence, entity, last_removal }
        };
        let changes: Vec<_> = entities.iter().map(change).collect();
        let last_removal = changes.iter().map(|change| change.last_removal).max().unwrap_or(0);
        let lineage = Lineage::from_bytes([1; 8]);
        let poll = CataloguePoll { lineage, position, last_removal, changes, complete_after: 0 };
        rules.changes.apply(poll, Instant::now() + Duration::from_mins(1));
    }

    #[test]
    fn entry_ages_from_fresh_to_expired() {
        use Freshness::{Expired, Fresh, MustRevalidate, Stale};
        let rules = FreshnessRules::new(None, Lifetimes::default());
        let now = Clock::default().now();
        apply(&rules, 1, &[]);
        let removed = rules.changes.version();
        apply(&rules, 2, &[(Entity::Chart(NoteHash::from_bytes([4; 32])), true)]);
        let changed = rules.changes.version();
        apply(&rules, 3, &[(Entity::Chart(HASH), false)]);
        let current = rules.changes.version();
        let [chart, gone] = [HASH, NoteHash::from_bytes([4; 32])].map(CacheKey::lookup);
        let list = CacheKey::list(b"");
        for (key, version, expected) in [
            (chart, current, [Fresh, Fresh, Fresh, Fresh, Stale, Expired]),
            (
                chart,
                changed,
                [MustRevalidate, MustRevalidate, MustRevalidate, MustRevalidate, MustRevalidate, Expired],
            ),
            (gone, removed, [Expired; 6]),
            (list, removed, [Fresh, Stale, Expired, Expired, Expired, Expired]),
            // Something was removed, and nobody knows whether it was before the read.
            (chart, Version::UNKNOWN, [Expired; 6]),
            (list, current, [Fresh, Fresh, Fresh, Fresh, Stale, Expired]),
            (list, changed, [Fresh, Stale, MustRevalidate, MustRevalidate, MustRevalidate, Expired]),
            (list, Version::UNKNOWN, [Fresh, Stale, Expired, Expired, Expired, Expired]),
        ] {
            let freshness = [0, 1_500, 2_500, 3_000, 670_000, 3_600_000].map(|age| {
                let read_at_ms = now.before(Duration::from_millis(age));
                rules.freshness(&key, Timestamps { read_at_ms, version }, now)
            });
            assert_eq!(freshness, expected, "{key:?} {version:?}");
        }
        assert!(!rules.may_join(&chart, changed, now) && !rules.may_join(&list, changed, now));
        assert!(!rules.may_join(&chart, Version::UNKNOWN, now) && rules.may_join(&list, current, now));
    }

    #[test]
    fn lifetimes_vary_by_up_to_a_tenth() {
        let rules = FreshnessRules::new(None, Lifetimes::default());
        let varied: Vec<_> = (0..=255)
            .map(|byte| {
                let mut name = [0; 32];
                name[31] = byte;
                rules
                    .jittered(&CacheKey::lookup(NoteHash::from_bytes(name)), Duration::from_secs(1_000))
                    .as_secs()
            })
            .collect();
        assert_eq!((*varied.iter().min().unwrap(), *varied.iter().max().unwrap()), (900, 1_099));
    }
}
