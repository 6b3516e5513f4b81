//! Compares `quick_cache` with `moka` for the memory tier: `cargo bench -p chart-index-cache --bench memory_tier`.
//!
//! 100,000 keys with bodies of 700 bytes, requested with a Zipf distribution (exponent 1), in a cache of 32 MiB that has
//! room for about 35 % of them; then entries of unknown hashes only. Each measurement runs in its own process, whose
//! growth in resident memory counts. Every miss is filled.
//!
//! Two runs on 2 shared cores. Times are for one get, with the insert after a miss, in each of two threads:
//!
//! | | Cold | Warm | Hits | Overhead per entry | Unknown hash |
//! |---|---|---|---|---|---|
//! | `quick_cache` 0.7 | 550, 571 ns | 525, 544 ns | 89.1 % | 279, 293 bytes | 72, 73 bytes |
//! | `moka` 0.12 (`sync`) | 1,873, 1,942 ns | 1,776, 1,792 ns | 87.6 % | 592, 683 bytes | 353 bytes |
//!
//! `quick_cache` is better in each column, so the crate uses it, with these overheads as weights.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may fail")]

use std::hash::RandomState;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quick_cache::sync::DefaultLifecycle;
use quick_cache::{OptionsBuilder, Weighter};

/// Like `CacheKey`: a kind and a hash.
type Key = (u8, [u8; 32]);
/// A body, a tag and two timestamps.
type Entry = (Bytes, Arc<str>, [u32; 2]);

const KEYS: u32 = 100_000;
const BODY: usize = 700;
const OVERHEAD: u64 = 288;
const BYTES: u64 = 32 << 20;
const UNKNOWN: u32 = 200_000;
const THREADS: u32 = 2;
const GETS: u32 = 3_000_000;

/// The operations of both caches.
trait Tier<Value>: Sync {
    fn get(&self, key: &Key) -> Option<Value>;
    fn insert(&self, key: Key, value: Value);
}

#[derive(Clone)]
struct ByteWeighter;

impl Weighter<Key, Entry> for ByteWeighter {
    fn weight(&self, _key: &Key, entry: &Entry) -> u64 {
        weight(entry)
    }
}

fn weight((body, tag, _): &Entry) -> u64 {
    OVERHEAD + body.len() as u64 + tag.len() as u64
}

impl<Value: Clone + Send + Sync, We: Weighter<Key, Value> + Clone + Send + Sync> Tier<Value>
    for quick_cache::sync::Cache<Key, Value, We, RandomState>
{
    fn get(&self, key: &Key) -> Option<Value> {
        self.get(key)
    }

    fn insert(&self, key: Key, value: Value) {
        self.insert(key, value);
    }
}

impl<Value: Clone + Send + Sync + 'static> Tier<Value> for moka::sync::Cache<Key, Value, RandomState> {
    fn get(&self, key: &Key) -> Option<Value> {
        self.get(key)
    }

    fn insert(&self, key: Key, value: Value) {
        self.insert(key, value);
    }
}

fn quick<Value: Clone, We: Weighter<Key, Value> + Clone>(
    capacity: u64,
    items: u64,
    ghosts: f64,
    weighter: We,
) -> quick_cache::sync::Cache<Key, Value, We, RandomState> {
    let options = OptionsBuilder::new()
        .weight_capacity(capacity)
        .estimated_items_capacity(usize::try_from(items).unwrap())
        .ghost_allocation(ghosts)
        .shards(8)
        .build()
        .unwrap();
    quick_cache::sync::Cache::with_options(options, weighter, RandomState::new(), DefaultLifecycle::default())
}

fn key(number: u32) -> Key {
    (b'l', *blake3::hash(&number.to_le_bytes()).as_bytes())
}

fn entry() -> Entry {
    (vec![7; BODY].into(), "0123456789abcdef0123456789abcdef".into(), [1, 2])
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    4_096 * statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

/// A number with a Zipf distribution with exponent 1, by its continuous form `n^u`.
fn zipf(random: &mut fastrand::Rng) -> usize {
    let rank = f64::from(KEYS).powf(random.f64());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the keys")]
    let rank = rank as usize;
    rank.min(KEYS as usize) - 1
}

/// One thread: gets, and inserts after a miss. Returns the number of hits.
fn drive(tier: &impl Tier<Entry>, keys: &[Key], order: &[u32]) -> u32 {
    let mut hits = 0;
    for number in order {
        let key = keys[*number as usize];
        match tier.get(&key) {
            Some(entry) => hits += u32::from(entry.0.len() == BODY),
            None => tier.insert(key, entry()),
        }
    }
    hits
}

/// Runs both threads. Returns the time of the slower one, and the share of hits.
fn drive_all(tier: &impl Tier<Entry>, keys: &[Key], orders: &[Vec<u32>]) -> (Duration, f64) {
    let started = Instant::now();
    let hits: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> =
            orders.iter().map(|order| scope.spawn(move || drive(tier, keys, order))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    (started.elapsed(), f64::from(hits) / f64::from(THREADS * GETS))
}

fn measure_known<T: Tier<Entry>>(name: &str, make: fn() -> T, count: fn(&T) -> u64) {
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let orders: Vec<Vec<u32>> = (0..THREADS)
        .map(|_| (0..GETS).map(|_| u32::try_from(zipf(&mut random)).unwrap()).collect())
        .collect();
    let before = resident();
    let tier = make();
    let (cold, _) = drive_all(&tier, &keys, &orders);
    let (warm, hits) = drive_all(&tier, &keys, &orders);
    let (grown, entries) = (resident() - before, count(&tier).max(1));
    let each = |time: Duration| time.as_nanos() / u128::from(GETS);
    let overhead = grown / entries - (BODY as u64 + 32);
    println!(
        "{name:12} cold {} ns, warm {} ns, hits {:.1} %, {entries} entries, {} KiB, overhead {overhead} bytes each",
        each(cold),
        each(warm),
        hits * 100.0,
        grown >> 10
    );
}

fn measure_unknown<T: Tier<[u32; 2]>>(name: &str, make: fn() -> T, count: fn(&T) -> u64) {
    let before = resident();
    let tier = make();
    for number in 0..UNKNOWN {
        tier.insert(key(number), [1, 2]);
    }
    let cached = (0..UNKNOWN).filter(|number| tier.get(&key(*number)).is_some()).count();
    let (grown, entries) = (resident() - before, count(&tier).max(1));
    println!("{name:12} unknown: {cached} of {UNKNOWN} cached, {} bytes each", grown / entries);
}

fn quick_known() -> quick_cache::sync::Cache<Key, Entry, ByteWeighter, RandomState> {
    quick(BYTES, BYTES / 1_024, 0.25, ByteWeighter)
}

fn quick_unknown() -> quick_cache::sync::Cache<Key, [u32; 2], quick_cache::UnitWeighter, RandomState> {
    quick(u64::from(UNKNOWN) * 7 / 6, u64::from(UNKNOWN) * 7 / 6, 0.0, quick_cache::UnitWeighter)
}

fn moka_known() -> moka::sync::Cache<Key, Entry, RandomState> {
    moka::sync::Cache::builder()
        .max_capacity(BYTES)
        .weigher(|_, entry: &Entry| u32::try_from(weight(entry)).unwrap())
        .build_with_hasher(RandomState::new())
}

fn moka_unknown() -> moka::sync::Cache<Key, [u32; 2], RandomState> {
    moka::sync::Cache::builder()
        .max_capacity(u64::from(UNKNOWN) * 7 / 6)
        .build_with_hasher(RandomState::new())
}

fn moka_count<Value: Clone + Send + Sync + 'static>(
    tier: &moka::sync::Cache<Key, Value, RandomState>,
) -> u64 {
    tier.run_pending_tasks();
    tier.entry_count()
}

const CASES: [&str; 4] = ["quick-known", "moka-known", "quick-unknown", "moka-unknown"];

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("quick-known") => measure_known("quick_cache", quick_known, |tier| tier.len() as u64),
        Some("moka-known") => measure_known("moka", moka_known, moka_count),
        Some("quick-unknown") => {
            measure_unknown("quick_cache", quick_unknown, |tier| tier.len() as u64);
        }
        Some("moka-unknown") => measure_unknown("moka", moka_unknown, moka_count),
        _ => {
            for case in CASES.into_iter().chain(CASES) {
                let this = std::env::current_exe().unwrap();
                assert!(Command::new(this).arg(case).status().unwrap().success());
            }
        }
    }
}
