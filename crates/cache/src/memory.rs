//! The first tier: the memory of this process.

use std::hash::RandomState;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::trust::Stamp;
use crate::{CacheKey, CachedBody, CachedResponse};

/// Answers by their keys, bounded in bytes, in two regions: answers with a body, and what is not found.
///
/// Anybody can ask for hashes that do not exist, and without end. Those have a region of their own, so that they
/// push out nothing but each other. An entry there is a key, two times and the number of a generation.
///
/// `quick_cache` holds both: `cargo bench -p chart-index-cache --bench tier_one` compares it with `moka`; the
/// numbers are in the documentation of that benchmark.
#[derive(Debug)]
pub(crate) struct Memory {
    found: Region<Held>,
    absent: Region<PackedStamp>,
}

/// A [`Stamp`] in its bytes.
type PackedStamp = [u8; 11];

type Region<Value> = Cache<CacheKey, Value, Bytewise, RandomState>;

#[derive(Debug, Clone)]
struct Held {
    body: CachedBody,
    stamp: Stamp,
    /// The bytes of the body when it came here. A body grows when it is compressed, and `quick_cache` needs the
    /// same weight at the removal of an entry as at its insertion.
    bytes: u64,
}

/// What an entry takes besides its bodies and tags: key, slot, its share of the table, the headers of three
/// allocations, and the memory of keys that were pushed out.
const HELD_OVERHEAD: u64 = 320;
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
        HELD_OVERHEAD + held.bytes
    }
}

impl Weighter<CacheKey, PackedStamp> for Bytewise {
    fn weight(&self, _key: &CacheKey, _stamp: &PackedStamp) -> u64 {
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
    pub(crate) fn get(&self, key: &CacheKey) -> Option<(CachedResponse, Stamp)> {
        if let Some(Held { body, stamp, .. }) = self.found.get(key) {
            return Some((CachedResponse::Found(body), stamp));
        }
        self.absent.get(key).map(|stamp| (CachedResponse::NotFound, Stamp::from_bytes(stamp)))
    }

    /// Keeps an answer in place of any other of the same key.
    pub(crate) fn keep(&self, key: CacheKey, answer: CachedResponse, stamp: Stamp) {
        match answer {
            CachedResponse::Found(body) => {
                self.absent.remove(&key);
                let bytes = body.size();
                self.found.insert(key, Held { body, stamp, bytes });
            }
            CachedResponse::NotFound => {
                self.found.remove(&key);
                self.absent.insert(key, stamp.to_bytes());
            }
        }
    }

    /// The equal answer that is cached already, if there is one, else this answer: so what was compressed is not
    /// compressed again because it was read again.
    pub(crate) fn reuse(&self, key: &CacheKey, answer: CachedResponse) -> CachedResponse {
        let CachedResponse::Found(body) = answer else { return answer };
        let cached = self.found.peek(key).map(|held| held.body).filter(|cached| *cached == body);
        CachedResponse::Found(cached.unwrap_or(body))
    }

    /// Accounts for a body that was compressed meanwhile, if it is still the one that is cached. The caller sees to
    /// it that nobody replaces the entry at the same time.
    pub(crate) fn weigh_again(&self, key: CacheKey, body: &CachedBody) {
        if let Some(held) = self.found.peek(&key).filter(|held| held.body.is_clone_of(body)) {
            self.found.insert(key, Held { bytes: held.body.size(), ..held });
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
    use crate::catalogue::GenerationNumber;
    use crate::{Clock, Representation};

    fn key(number: u32) -> CacheKey {
        CacheKey::lookup(NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
    }

    fn stamp() -> Stamp {
        let moment = Clock::default().now().moment;
        Stamp { read_at: moment, checked_at: moment, generation: GenerationNumber::UNKNOWN }
    }

    #[test]
    fn unknown_hashes_push_out_nothing_but_each_other() {
        let memory = Memory::with_bytes(4 << 20);
        for number in 0..1_000 {
            memory.keep(key(number), CachedResponse::found(vec![0; 700], "tag"), stamp());
        }
        for number in 1_000..1_000_000 {
            memory.keep(key(number), CachedResponse::NotFound, stamp());
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
            memory.keep(key(number), CachedResponse::found(vec![0; 6_000], "tag"), stamp());
        }
        let (bytes, found, _) = memory.size();
        assert!(bytes <= 3 << 20 && found > 400, "{found} in {bytes} bytes");
    }

    #[test]
    fn compressed_bytes_count() {
        let memory = Memory::with_bytes(4 << 20);
        let compressed = |body: &CachedBody| {
            let gzip = Representation { bytes: vec![7; 1_000].into(), tag: "gzip".into() };
            body.gzip_or_compress(|_| Some(gzip)).unwrap().bytes.len()
        };
        memory.keep(key(1), CachedResponse::found(vec![0; 6_000], "tag"), stamp());
        let (before, ..) = memory.size();
        let Some((CachedResponse::Found(body), _)) = memory.get(&key(1)) else { panic!("it is cached") };
        compressed(&body);
        assert_eq!(memory.size().0, before, "quick_cache still has the weight of the insertion");
        memory.weigh_again(key(1), &body);
        assert_eq!(memory.size().0, before + 1_000 + 4 + size_of::<Representation>() as u64);

        let equal = CachedResponse::found(vec![0; 6_000], "tag");
        let CachedResponse::Found(reused) = memory.reuse(&key(1), equal.clone()) else { panic!("a body") };
        assert!(reused.is_clone_of(&body), "an equal body is not compressed again");
        memory.keep(key(1), equal, stamp());
        assert_eq!(memory.size().0, before, "replaced by one that is not compressed");
        memory.weigh_again(key(1), &body);
        assert_eq!(memory.size().0, before, "another body is in its place");
        memory.forget(&key(1));
        assert_eq!(memory.size().0, 0);
    }

    #[test]
    fn compressed_bodies_are_bounded_in_bytes() {
        let memory = Memory::with_bytes(4 << 20);
        for number in 0..10_000 {
            memory.keep(key(number), CachedResponse::found(vec![0; 6_000], "tag"), stamp());
            let Some((CachedResponse::Found(body), _)) = memory.get(&key(number)) else { continue };
            let gzip = Representation { bytes: vec![7; 2_000].into(), tag: "gzip".into() };
            body.gzip_or_compress(|_| Some(gzip)).unwrap();
            memory.weigh_again(key(number), &body);
        }
        let held: u64 = (0..10_000)
            .filter_map(|number| memory.get(&key(number)))
            .map(|(answer, _)| match answer {
                CachedResponse::Found(body) => body.size(),
                CachedResponse::NotFound => 0,
            })
            .sum();
        assert!((2 << 20..=3 << 20).contains(&held), "{held} bytes");
    }

    #[test]
    fn an_answer_moves_between_the_regions() {
        let memory = Memory::with_bytes(4 << 20);
        let found = CachedResponse::found("{}", "tag");
        memory.keep(key(1), CachedResponse::NotFound, stamp());
        memory.keep(key(1), found.clone(), stamp());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().2), (found, 0));
        memory.keep(key(1), CachedResponse::NotFound, stamp());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().1), (CachedResponse::NotFound, 0));
        memory.forget(&key(1));
        assert!(memory.get(&key(1)).is_none());
    }
}
