//! The first tier: the memory of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};

use crate::freshness::Timestamps;
use crate::{CacheKey, CachedBody, CachedResponse};

/// Cached responses, bounded in bytes, in two regions: responses with a body, and keys that the index does not
/// hold.
///
/// Clients can ask for any number of hashes that do not exist. These have a region of their own, in which they
/// evict only each other. An entry there is a key and its timestamps.
///
/// Both regions are a `quick_cache`, which was compared with `moka`
/// (`benchmarks/results/2026-11-22-memory-tier.md`).
#[derive(Debug)]
pub(crate) struct MemoryTier {
    found: Entries<FoundEntry>,
    not_found: Entries<Timestamps>,
    max_bytes: u64,
    evictions: Arc<AtomicU64>,
}

type Entries<Value> = Cache<CacheKey, Value, ByteWeighter, RandomState, CountEvictions<Value>>;

#[derive(Debug, Clone)]
struct FoundEntry {
    body: CachedBody,
    timestamps: Timestamps,
    /// The size of the body at insertion. A body grows when it is compressed, and `quick_cache` needs the same
    /// weight for the insertion and the removal of an entry.
    bytes: u64,
}

/// The bytes of an entry besides its bodies and tags: key, slot, its share of the table, the headers of three
/// allocations, and the ghost entries of evicted keys.
const FOUND_OVERHEAD: u64 = 320;
/// The bytes of an entry of a key that the index does not hold.
const NOT_FOUND_BYTES: u64 = 80;
/// The share of the memory for keys that the index does not hold: one byte of this many.
const NOT_FOUND_SHARE: u64 = 4;
/// Enough that threads rarely wait for each other, and few enough that a large body fits into one.
const SHARDS: usize = 8;

#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<CacheKey, FoundEntry> for ByteWeighter {
    fn weight(&self, _key: &CacheKey, entry: &FoundEntry) -> u64 {
        FOUND_OVERHEAD + entry.bytes
    }
}

impl Weighter<CacheKey, Timestamps> for ByteWeighter {
    fn weight(&self, _key: &CacheKey, _timestamps: &Timestamps) -> u64 {
        NOT_FOUND_BYTES
    }
}

/// The default lifecycle of `quick_cache`, which also counts evicted entries.
#[derive(Debug, Clone)]
struct CountEvictions<Value> {
    evictions: Arc<AtomicU64>,
    default: DefaultLifecycle<CacheKey, Value>,
}

impl<Value> Lifecycle<CacheKey, Value> for CountEvictions<Value> {
    type RequestState = <DefaultLifecycle<CacheKey, Value> as Lifecycle<CacheKey, Value>>::RequestState;

    fn on_evict(&self, state: &mut Self::RequestState, key: CacheKey, value: Value) {
        self.evictions.fetch_add(1, Ordering::Relaxed);
        self.default.on_evict(state, key, value);
    }
}

impl MemoryTier {
    /// Capacity for this many bytes in both regions.
    pub(crate) fn with_capacity(bytes: u64) -> Self {
        let not_found = bytes / NOT_FOUND_SHARE;
        let evictions = Arc::new(AtomicU64::new(0));
        Self {
            found: region(bytes - not_found, 1_024, 0.25, &evictions),
            not_found: region(not_found, NOT_FOUND_BYTES, 0.0, &evictions),
            max_bytes: bytes,
            evictions,
        }
    }

    /// The entry of a key, whatever its age.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<(CachedResponse, Timestamps)> {
        if let Some(FoundEntry { body, timestamps, .. }) = self.found.get(key) {
            return Some((CachedResponse::Found(body), timestamps));
        }
        let timestamps = self.not_found.get(key)?;
        Some((CachedResponse::NotFound, timestamps))
    }

    /// Inserts or replaces the entry of a key.
    pub(crate) fn insert(&self, key: CacheKey, response: CachedResponse, timestamps: Timestamps) {
        match response {
            CachedResponse::Found(body) => {
                self.not_found.remove(&key);
                let bytes = body.size();
                self.found.insert(key, FoundEntry { body, timestamps, bytes });
            }
            CachedResponse::NotFound => {
                self.found.remove(&key);
                self.not_found.insert(key, timestamps);
            }
        }
    }

    /// The cached body if it equals that of this response, else this response. So a body that was read again
    /// without a change is not compressed again.
    pub(crate) fn reuse(&self, key: &CacheKey, response: CachedResponse) -> CachedResponse {
        let CachedResponse::Found(body) = response else { return response };
        let cached = self.found.peek(key).map(|entry| entry.body).filter(|cached| *cached == body);
        CachedResponse::Found(cached.unwrap_or(body))
    }

    /// The timestamps of the entry of a key, without counting as a use of it.
    pub(crate) fn timestamps(&self, key: &CacheKey) -> Option<Timestamps> {
        let found = self.found.peek(key).map(|entry| entry.timestamps);
        found.or_else(|| self.not_found.peek(key))
    }

    /// Updates the accounted size of a body that was compressed after its insertion, if it is still cached. The
    /// caller must not replace the entry concurrently.
    pub(crate) fn update_size(&self, key: CacheKey, body: &CachedBody) {
        if let Some(entry) = self.found.peek(&key).filter(|entry| entry.body.is_clone_of(body)) {
            self.found.insert(key, FoundEntry { bytes: entry.body.size(), ..entry });
        }
    }

    /// The maximum of bytes in use.
    pub(crate) const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// The number of entries that made room for others so far.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// The bytes in use, and the number of entries with a body and without.
    pub(crate) fn size(&self) -> (u64, usize, usize) {
        (self.found.weight() + self.not_found.weight(), self.found.len(), self.not_found.len())
    }
}

/// The hasher has a random key, since clients choose the keys.
#[expect(clippy::expect_used, reason = "every option without a default is set")]
fn region<Value: Clone>(
    bytes: u64,
    bytes_per_entry: u64,
    ghosts: f64,
    evictions: &Arc<AtomicU64>,
) -> Entries<Value>
where
    ByteWeighter: Weighter<CacheKey, Value>,
{
    let options = OptionsBuilder::new()
        .weight_capacity(bytes)
        .estimated_items_capacity(usize::try_from(bytes / bytes_per_entry).unwrap_or(usize::MAX).max(1))
        .ghost_allocation(ghosts)
        .shards(SHARDS)
        .build()
        .expect("the capacities are set");
    let lifecycle = CountEvictions { evictions: Arc::clone(evictions), default: DefaultLifecycle::default() };
    Cache::with_options(options, ByteWeighter, RandomState::new(), lifecycle)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;
    use crate::version::Version;
    use crate::{Clock, Representation};

    fn key(number: u32) -> CacheKey {
        CacheKey::lookup(NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
    }

    fn timestamps() -> Timestamps {
        Timestamps { read_at_ms: Clock::default().now().ms, version: Version::UNKNOWN }
    }

    #[test]
    fn unknown_hashes_evict_only_each_other() {
        let memory = MemoryTier::with_capacity(4 << 20);
        for number in 0..1_000 {
            memory.insert(key(number), CachedResponse::found(vec![0; 700], "tag"), timestamps());
        }
        for number in 1_000..1_000_000 {
            memory.insert(key(number), CachedResponse::NotFound, timestamps());
        }
        assert!((0..1_000).all(|number| memory.get(&key(number)).is_some()));
        let (bytes, found, not_found) = memory.size();
        assert_eq!(found, 1_000);
        assert!(not_found > 12_800 && bytes <= 4 << 20, "{not_found} in {bytes} bytes");
    }

    #[test]
    fn memory_is_bounded_in_bytes() {
        let memory = MemoryTier::with_capacity(4 << 20);
        for number in 0..10_000 {
            memory.insert(key(number), CachedResponse::found(vec![0; 6_000], "tag"), timestamps());
        }
        let (bytes, found, _) = memory.size();
        assert!(bytes <= 3 << 20 && found > 400, "{found} in {bytes} bytes");
        assert_eq!(memory.evictions(), 10_000 - found as u64);
        memory.insert(key(9_998), CachedResponse::NotFound, timestamps());
        assert_eq!(memory.evictions(), 10_000 - found as u64, "replacements do not count");
    }

    #[test]
    fn compressed_bytes_count() {
        let memory = MemoryTier::with_capacity(4 << 20);
        let compressed = |body: &CachedBody| {
            let gzip = Representation { bytes: vec![7; 1_000].into(), tag: "gzip".into() };
            body.gzip_or_compress(|_| Some(gzip)).unwrap().bytes.len()
        };
        memory.insert(key(1), CachedResponse::found(vec![0; 6_000], "tag"), timestamps());
        let (before, ..) = memory.size();
        let Some((CachedResponse::Found(body), _)) = memory.get(&key(1)) else { panic!("it is cached") };
        compressed(&body);
        assert_eq!(memory.size().0, before, "quick_cache still has the weight of the insertion");
        memory.update_size(key(1), &body);
        assert_eq!(memory.size().0, before + 1_000 + 4 + size_of::<Representation>() as u64);

        let equal = CachedResponse::found(vec![0; 6_000], "tag");
        let CachedResponse::Found(reused) = memory.reuse(&key(1), equal.clone()) else { panic!("a body") };
        assert!(reused.is_clone_of(&body), "an equal body is not compressed again");
        memory.insert(key(1), equal, timestamps());
        assert_eq!(memory.size().0, before, "replaced by one that is not compressed");
        memory.update_size(key(1), &body);
        assert_eq!(memory.size().0, before, "the entry has another body");
    }

    #[test]
    fn compressed_bodies_are_bounded_in_bytes() {
        let memory = MemoryTier::with_capacity(4 << 20);
        for number in 0..10_000 {
            memory.insert(key(number), CachedResponse::found(vec![0; 6_000], "tag"), timestamps());
            let Some((CachedResponse::Found(body), _)) = memory.get(&key(number)) else { continue };
            let gzip = Representation { bytes: vec![7; 2_000].into(), tag: "gzip".into() };
            body.gzip_or_compress(|_| Some(gzip)).unwrap();
            memory.update_size(key(number), &body);
        }
        let used: u64 = (0..10_000)
            .filter_map(|number| memory.get(&key(number)))
            .map(|(response, _)| match response {
                CachedResponse::Found(body) => body.size(),
                CachedResponse::NotFound => 0,
            })
            .sum();
        assert!((2 << 20..=3 << 20).contains(&used), "{used} bytes");
    }

    #[test]
    fn replacement_moves_between_regions() {
        let memory = MemoryTier::with_capacity(4 << 20);
        let found = CachedResponse::found("{}", "tag");
        memory.insert(key(1), CachedResponse::NotFound, timestamps());
        memory.insert(key(1), found.clone(), timestamps());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().2), (found, 0));
        memory.insert(key(1), CachedResponse::NotFound, timestamps());
        assert_eq!((memory.get(&key(1)).unwrap().0, memory.size().1), (CachedResponse::NotFound, 0));
    }
}
