//! Measures reads that the memory of the cache answers:
//! `cargo bench -p chart-index-benchmarks --bench memory_hits`.
//!
//! The cache holds 10,000 responses of 700 bytes and 10,000 unknown hashes. `hot` reads one of them, `all`
//! reads them in turn, so that most reads miss the caches of the processor. In the group `after_changes`,
//! 65,536 other charts have changed since the responses were read.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chart_index_cache::{
    Cache, CacheConfig, CacheConnections, CacheKey, CachedResponse, Lifetimes, MemoryLookup, RecentChanges,
    Representation,
};
use chart_index_domain::{
    CatalogueChange, CataloguePoll, Entity, Lineage, NoteHash, Origin, Position, ReadError,
};
use criterion::Criterion;
use tokio::runtime::Runtime;

const KEYS: u32 = 10_000;
const BODY_BYTES: usize = 700;
const GZIP_BYTES: usize = 400;

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let runtime = Runtime::new().unwrap();
    let changes = Arc::new(RecentChanges::new());
    poll(&changes, 0..0);
    let cache = runtime.block_on(filled(&changes));
    lookups(&mut criterion, &cache, "get_from_memory");
    reads(&mut criterion, &runtime, &cache);
    poll(&changes, 2 * KEYS..2 * KEYS + 65_536);
    lookups(&mut criterion, &cache, "after_changes");
    criterion.final_summary();
}

fn lookups(criterion: &mut Criterion, cache: &Arc<Cache>, name: &str) {
    let mut group = criterion.benchmark_group(name);
    for (name, keys) in [
        ("hot", vec![key(0)]),
        ("all", (0..KEYS).map(key).collect()),
        ("unknown_hot", vec![key(KEYS)]),
        ("unknown_all", (KEYS..2 * KEYS).map(key).collect()),
    ] {
        let mut keys = keys.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let lookup = cache.get_from_memory(black_box(keys.next().unwrap()));
                assert!(matches!(lookup, MemoryLookup::Fresh(_)));
                lookup
            });
        });
    }
    group.bench_function("miss", |bencher| {
        let key = key(2 * KEYS);
        bencher.iter(|| assert_eq!(cache.get_from_memory(black_box(&key)), MemoryLookup::Miss));
    });
    group.finish();
}

fn reads(criterion: &mut Criterion, runtime: &Runtime, cache: &Arc<Cache>) {
    criterion.bench_function("get/hot", |bencher| {
        bencher.iter_custom(|reads| runtime.block_on(read(cache, reads)));
    });
    let MemoryLookup::Fresh(CachedResponse::Found(body)) = cache.get_from_memory(&key(0)) else {
        panic!("a body is cached")
    };
    criterion.bench_function("gzip/cached", |bencher| {
        bencher.iter(|| cache.gzip(&key(0), black_box(&body), |_| Some(compressed())).unwrap().bytes.len());
    });
}

/// The time of this many reads of one key.
async fn read(cache: &Arc<Cache>, reads: u64) -> Duration {
    let (key, start) = (key(0), Instant::now());
    for _ in 0..reads {
        black_box(cache.get(key, unexpected_fill).await.unwrap());
    }
    start.elapsed()
}

async fn unexpected_fill() -> Result<CachedResponse, ReadError> {
    panic!("it is cached")
}

/// A cache whose entries do not become stale.
async fn filled(changes: &Arc<RecentChanges>) -> Arc<Cache> {
    let day = Duration::from_hours(24);
    let config = CacheConfig {
        changes: Some(Arc::clone(changes)),
        lifetimes: Lifetimes { stale_after: day, expire_after: day },
        ..CacheConfig::default()
    };
    let cache = Cache::new(config, CacheConnections::disabled());
    for number in 0..2 * KEYS {
        cache.get(key(number), move || async move { Ok(response(number)) }).await.unwrap();
    }
    cache
}

/// Applies a poll in which these charts have changed. It is from the future, so that it is the last one.
fn poll(changes: &RecentChanges, charts: Range<u32>) {
    let position = Position { origin: Origin(1), sequence: charts.end.into() };
    let entities = charts.map(|number| {
        let entity = Entity::Chart(hash(number));
        CatalogueChange { sequence: number.into(), entity, last_removal: 0 }
    });
    let poll = CataloguePoll {
        lineage: Lineage::from_bytes([1; 8]),
        position,
        last_removal: 0,
        changes: entities.collect(),
        complete_after: 0,
    };
    changes.apply(poll, Instant::now() + Duration::from_hours(24));
}

/// A body for the first half of the keys; the others are unknown.
fn response(number: u32) -> CachedResponse {
    if number < KEYS {
        CachedResponse::found(vec![b'x'; BODY_BYTES], "0123456789abcdef0123456789abcdef")
    } else {
        CachedResponse::NotFound
    }
}

fn compressed() -> Representation {
    Representation { bytes: vec![b'x'; GZIP_BYTES].into(), tag: "0123456789abcdef".into() }
}

fn key(number: u32) -> CacheKey {
    CacheKey::lookup(hash(number))
}

fn hash(number: u32) -> NoteHash {
    NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}
