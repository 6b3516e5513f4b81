//! The first tier: the memory of this process.

use std::hash::RandomState;
use std::sync::Arc;

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::trust::Stamp;
use crate::{CacheKey, CachedAnswer};

/// Answers by their keys, bounded in bytes, in two regions: answers with a body, and what is not found.
///
/// Anybody can ask for hashes that do not exist, and without end. Those have a region of their own, so that they
/// push out nothing but each other. An entry there is a key and two times.
///
/// `quick_cache` holds both: `cargo bench -p chart-index-cache --bench tier_one` compares it with `moka`; the
/// numbers are in the documentation of that benchmark.
#[derive(Debug)]
pub(crate) struct Memory {
    found: Region<Held>,
    absent: Region<Stamp>,
}

type Region<Value> = Cache<CacheKey, Value, Bytewise, RandomState>;

#[derive(Debug, Clone)]
struct Held {
    body: Bytes,
    tag: Arc<str>,
    stamp: Stamp,
}

/// What an entry takes besides its body and tag: key, slot, its share of the table, the headers of two
/// allocations, and the memory of keys that were pushed out.
const HELD_OVERHEAD: u64 = 288;
/// What an entry for something that is not found takes in all.
const ABSENT_BYTES: u64 = 72;
/// The part of the memory that is for what is not found: one in so many bytes.
const ABSENT_SHARE: u64 = 4;
/// More than one, so that two threads seldom wait for each other; few, so that a large body fits into one.
const REGION_SHARDS: usize = 8;

#[derive(Debug, Clone)]
struct Bytewise;

impl Weighter<CacheKey, Held> for Bytewise {
    fn weight(&self, _key: &CacheKey, held: &Held) -> u64 {
        HELD_OVERHEAD + held.body.len() as u64 + held.tag.len() as u64
    }
}

impl Weighter<CacheKey, Stamp> for Bytewise {
    fn weight(&self, _key: &CacheKey, _stamp: &Stamp) -> u64 {
        ABSENT_BYTES
    }
}

impl Memory {
    /// Room for so many bytes in all.
    pub(crate) fn with_bytes(bytes: u64) -> Self {
        let absent = bytes / ABSENT_SHARE;
        Self { found: region(bytes - absent, 1_024, 0.25), absent: region(absent, ABSENT_BYTES, 0.0) }
    }

    /// What is kept, whatever its age.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<(CachedAnswer, Stamp)> {
        if let Some(Held { body, tag, stamp }) = self.found.get(key) {
            return Some((CachedAnswer::Found { body, tag }, stamp));
        }
        self.absent.get(key).map(|stamp| (CachedAnswer::NotFound, stamp))
    }

    /// Keeps an answer in place of any other of the same key.
    pub(crate) fn keep(&self, key: CacheKey, answer: CachedAnswer, stamp: Stamp) {
        match answer {
            CachedAnswer::Found { body, tag } => {
                self.absent.remove(&key);
                self.found.insert(key, Held { body, tag, stamp });
            }
            CachedAnswer::NotFound => {
                self.found.remove(&key);
                self.absent.insert(key, stamp);
            }
        }
    }

    /// Forgets an answer.
    pub(crate) fn forget(&self, key: &CacheKey) {
        self.found.remove(key);
        self.absent.remove(key);
    }

    /// The bytes in use, and the answers with a body and without.
    pub(crate) fn size(&self) -> (u64, usize, usize) {
        (self.found.weight() + self.absent.weight(), self.found.len(), self.absent.len())
    }
}

/// The hasher is keyed at random: keys are chosen by clients.
#[expect(clippy::expect_used, reason = "every option that has no default is set")]
fn region<Value: Clone>(bytes: u64, bytes_each: u64, ghosts: f64) -> Region<Value>
where
    Bytewise: Weighter<CacheKey, Value>,
{
    let options = OptionsBuilder::new()
        .weight_capacity(bytes)
        .estimated_items_capacity(usize::try_from(bytes / bytes_each).unwrap_or(usize::MAX).max(1))
        .ghost_allocation(ghosts)
        .shards(REGION_SHARDS)
        .build()
        .expect("the capacities are set");
    Cache::with_options(options, Bytewise, RandomState::new(), DefaultLifecycle::default())
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;
    use crate::Clock;

    fn key(number: u32) -> CacheKey {
        CacheKey::lookup(NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
    }

    fn stamp() -> Stamp {
        let moment = Clock::default().now().moment;
        Stamp { read_at: moment, checked_at: moment }
    }

    #[test]
    fn unknown_hashes_push_out_nothing_but_each_other() {
        let memory = Memory::with_bytes(4 << 20);
        for number in 0..1_000 {
            memory.keep(key(number), CachedAnswer::found(vec![0; 700], "tag"), stamp());
        }
        for number in 1_000..1_000_000 {
            memory.keep(key(number), CachedAnswer::NotFound, stamp());
        }
        assert!((0..1_000).all(|number| memory.get(&key(number)).is_some()));
        let (bytes, found, absent) = memory.size();
        assert_eq!(found, 1_000);
        assert!(absent > 14_000 && bytes <= 4 << 20, "{absent} in {bytes} bytes");
    }

    #[test]
    fn answers_are_bounded_in_bytes() {
        let memory = Memory::with_bytes(4 << 20);
        for number in 0..10_000 {
            memory.keep(key(number), CachedAnswer::found(vec![0; 6_000], "tag"), stamp());
        }
        let (bytes, found, _) = memory.size();
        assert!(bytes <= 3 << 20 && found > 400, "{found} in {bytes} bytes");
    }

    #[test]
    fn an_answer_moves_between_the_regions() {
        let memory = Memory::with_bytes(4 << 20);
        let found = CachedAnswer::found("{}", "tag");
        memory.keep(key(1), CachedAnswer::NotFound, stamp());
        memory.keep(key(1), found.clone(), stamp());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().2), (found, 0));
        memory.keep(key(1), CachedAnswer::NotFound, stamp());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().1), (CachedAnswer::NotFound, 0));
        memory.forget(&key(1));
        assert!(memory.get(&key(1)).is_none());
    }
}
