//! What may be served: how old it is, and whether a change of it would have been heard.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::catalogue::{Catalogue, GenerationNumber};
use crate::clock::{Moment, Now};
use crate::{CacheKey, CatalogueStatusSource, Lifetimes};

/// When an answer was read from the store, and when it was last known to be in force: both as of the beginning of
/// the read, since what changes during a read may be missing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) read_at: Moment,
    pub(crate) checked_at: Moment,
    /// The generation of the catalogue that was read last before the read began.
    pub(crate) generation: GenerationNumber,
}

impl Stamp {
    /// The stamp without the bytes that its alignment would add to an entry for an unknown hash.
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
            read_at: Moment::from_bits(u32::from_le_bytes(read_at)),
            checked_at: Moment::from_bits(u32::from_le_bytes(checked_at)),
            generation: GenerationNumber::from_bytes(generation),
        }
    }
}

/// What may be done with an answer that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Serve it.
    Fresh,
    /// Serve it, and look behind it whether it still holds.
    Stale,
    /// Look first, and serve it only if that fails.
    Doubtful,
    /// Too old for anything.
    Dead,
}

/// Whether invalidations are heard.
#[derive(Debug)]
pub(crate) struct Trust {
    /// When the feed last proved to be alive, plus one; zero for never. In real time: a pause of the feed is one.
    alive_ms: AtomicU64,
    /// When listening began, as [`Moment::bits`]: what was checked before may have changed unheard.
    since: AtomicU32,
    /// What the ages of this replica vary by.
    seed: u8,
    /// What is known of the catalogue without any invalidation.
    pub(crate) catalogue: Catalogue,
}

/// A feed that was silent for so long may be dead.
const SILENCE: Duration = Duration::from_secs(2);
/// What was checked so recently is served although the feed is silent: with [`SILENCE`] it makes up the five
/// seconds in which a removal is in force everywhere (decisions, "ROX").
const UNHEARD: Duration = Duration::from_secs(3);

impl Trust {
    pub(crate) fn new(catalogue: Option<CatalogueStatusSource>) -> Self {
        Self {
            alive_ms: AtomicU64::new(0),
            since: AtomicU32::new(0),
            seed: fastrand::u8(..),
            catalogue: Catalogue::new(catalogue),
        }
    }

    /// Listening begins, anew: nothing from before is trusted.
    pub(crate) fn begin(&self, now: Now) {
        self.since.store(now.moment.bits(), Ordering::Relaxed);
        self.confirm(now);
    }

    /// The feed was alive at this time.
    pub(crate) fn confirm(&self, now: Now) {
        self.alive_ms.store(now.real_ms + 1, Ordering::Release);
    }

    /// Whether a change that happens now would be heard.
    pub(crate) fn is_heard(&self, now: Now) -> bool {
        let alive_ms = self.alive_ms.load(Ordering::Acquire);
        alive_ms > 0 && u128::from((now.real_ms + 1).saturating_sub(alive_ms)) <= SILENCE.as_millis()
    }

    /// What may be done with an answer.
    pub(crate) fn standing(&self, key: &CacheKey, stamp: Stamp, ages: &Lifetimes, now: Now) -> Standing {
        let read_ago = now.moment.since(stamp.read_at);
        let checked_ago = now.moment.since(stamp.checked_at);
        let vary = |age| self.vary(key, age);
        if read_ago >= ages.expire_after {
            Standing::Dead
        } else if read_ago >= vary(ages.revalidate_after)
            || self.is_unheard(checked_ago, now) && !self.is_unchanged(stamp)
        {
            Standing::Doubtful
        } else if read_ago >= vary(ages.stale_after)
            || checked_ago >= vary(ages.recheck_after) && !self.is_unchanged(stamp)
        {
            Standing::Stale
        } else {
            Standing::Fresh
        }
    }

    /// Whether the catalogue is in the generation that the answer was read in, as of a moment ago. Then the answer is
    /// in force without any invalidation: no change was committed between the two reads of the generation, of which
    /// one came before the read of the answer.
    fn is_unchanged(&self, stamp: Stamp) -> bool {
        self.catalogue.unchanged_ago(stamp.generation).is_some_and(|ago| ago <= UNHEARD)
    }

    fn is_unheard(&self, checked_ago: Duration, now: Now) -> bool {
        if !self.is_heard(now) {
            return checked_ago > UNHEARD;
        }
        let since = Moment::from_bits(self.since.load(Ordering::Relaxed));
        checked_ago >= now.moment.since(since)
    }

    /// An age, varied by up to a tenth of it.
    pub(crate) fn vary(&self, key: &CacheKey, age: Duration) -> Duration {
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

    fn stamp(read_at: Moment, checked_at: Moment) -> Stamp {
        Stamp { read_at, checked_at, generation: GenerationNumber::UNKNOWN }
    }

    #[test]
    fn an_unchanged_catalogue_stands_in_for_invalidations() {
        let status =
            Arc::new(Mutex::new(CatalogueStatus { generation: Generation(1), read_at: Instant::now() }));
        let source = {
            let status = Arc::clone(&status);
            CatalogueStatusSource::new(move || Some(*status.lock().unwrap()))
        };
        let (clock, ages, trust) =
            (Clock::default(), LifetimesByKind::default().lookup, Trust::new(Some(source)));
        let generation = trust.catalogue.number_of(Some(Generation(1)));
        let proven = Stamp { generation, ..stamp(clock.now().moment, clock.now().moment) };
        clock.advance(Duration::from_mins(1));
        let standing = || trust.standing(&KEY, proven, &ages, clock.now());
        assert_eq!(standing(), Standing::Fresh, "also past the age of a check");
        let unproven = Stamp { generation: GenerationNumber::UNKNOWN, ..proven };
        assert_eq!(trust.standing(&KEY, unproven, &ages, clock.now()), Standing::Doubtful);
        trust.begin(clock.now());
        assert_eq!(standing(), Standing::Fresh, "whenever listening began");

        status.lock().unwrap().read_at = Instant::now().checked_sub(Duration::from_millis(3_100)).unwrap();
        assert_eq!(standing(), Standing::Doubtful, "confirmed too long ago");
        *status.lock().unwrap() = CatalogueStatus { generation: Generation(2), read_at: Instant::now() };
        assert_eq!(standing(), Standing::Doubtful, "changed");
        *status.lock().unwrap() = CatalogueStatus { generation: Generation(1), read_at: Instant::now() };
        clock.advance(Duration::from_mins(12));
        let read_again = Stamp { generation: trust.catalogue.number_of(Some(Generation(1))), ..proven };
        assert_eq!(
            trust.standing(&KEY, read_again, &ages, clock.now()),
            Standing::Stale,
            "read again all the same"
        );
    }

    #[test]
    fn an_answer_ages_from_fresh_to_dead() {
        let (clock, trust, ages) = (Clock::default(), Trust::new(None), LifetimesByKind::default().lookup);
        trust.begin(clock.now());
        clock.advance(Duration::from_hours(48));
        let now = clock.now();
        for (read_s, checked_s, expected) in [
            (0, 0, Standing::Fresh),
            (500, 26, Standing::Fresh),
            (500, 34, Standing::Stale),
            (670, 0, Standing::Stale),
            (4_000, 0, Standing::Doubtful),
            (86_400, 0, Standing::Dead),
        ] {
            let ago = |seconds| now.moment.before(Duration::from_secs(seconds));
            let stamp = stamp(ago(read_s), ago(checked_s));
            assert_eq!(trust.standing(&KEY, stamp, &ages, now), expected, "{read_s} s, {checked_s} s");
        }
    }

    #[test]
    fn what_was_checked_before_listening_began_is_doubted() {
        let (clock, trust, ages) = (Clock::default(), Trust::new(None), LifetimesByKind::default().lookup);
        let stamp_now = || stamp(clock.now().moment, clock.now().moment);
        let unheard = stamp_now();
        assert_eq!(trust.standing(&KEY, unheard, &ages, clock.now()), Standing::Fresh, "for three seconds");
        clock.advance(Duration::from_millis(3_100));
        assert_eq!(trust.standing(&KEY, unheard, &ages, clock.now()), Standing::Doubtful);
        let before = stamp_now();
        trust.begin(clock.now());
        clock.advance(Duration::from_millis(20));
        assert_eq!(trust.standing(&KEY, before, &ages, clock.now()), Standing::Doubtful);
        assert_eq!(trust.standing(&KEY, stamp_now(), &ages, clock.now()), Standing::Fresh);
    }

    #[test]
    fn ages_vary_by_a_tenth_at_most() {
        let trust = Trust::new(None);
        let ages: Vec<_> = (0..=255)
            .map(|byte| {
                let mut name = [0; 32];
                name[31] = byte;
                trust
                    .vary(&CacheKey::lookup(NoteHash::from_bytes(name)), Duration::from_secs(1_000))
                    .as_secs()
            })
            .collect();
        assert_eq!((*ages.iter().min().unwrap(), *ages.iter().max().unwrap()), (900, 1_099));
    }
}
