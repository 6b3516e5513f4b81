//! Measures reads that the memory of the cache answers: `cargo bench -p chart-index-cache --bench memory_hits`.
//!
//! The cache receives invalidations from a Redis server of the benchmark's own, as a replica does. It holds
//! 10,000 responses of 700 bytes and 10,000 unknown hashes. `hot` reads one of them, `all` reads them in turn,
//! so that most reads miss the caches of the processor.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use chart_index_cache::{
    Cache, CacheConfig, CacheConnections, CacheKey, CachedResponse, CatalogueStatus, CatalogueStatusSource,
    Lifetimes, LifetimesByKind, MemoryLookup, Representation,
};
use chart_index_domain::NoteHash;
use chart_index_domain::search::{DatabaseIdentity, Generation};
use chart_index_redis::testing::RedisServer;
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
    let server = RedisServer::start(&[]);
    let cache = runtime.block_on(filled(&server));
    lookups(&mut criterion, &cache);
    reads(&mut criterion, &runtime, &cache);
    criterion.final_summary();
}

fn lookups(criterion: &mut Criterion, cache: &Cache<Infallible>) {
    let mut group = criterion.benchmark_group("get_from_memory");
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

fn reads(criterion: &mut Criterion, runtime: &Runtime, cache: &Cache<Infallible>) {
    criterion.bench_function("get_or_fill/hot", |bencher| {
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
async fn read(cache: &Cache<Infallible>, reads: u64) -> Duration {
    let (key, start) = (key(0), Instant::now());
    for _ in 0..reads {
        black_box(cache.get_or_fill(key, || async { panic!("it is cached") }).await.unwrap());
    }
    start.elapsed()
}

/// A cache that receives invalidations, and whose entries do not become stale.
async fn filled(server: &RedisServer) -> Cache<Infallible> {
    let day = Duration::from_hours(24);
    let lifetimes =
        Lifetimes { recheck_after: day, stale_after: day, revalidate_after: day, expire_after: day };
    // Read in the future: entries stay current even if the machine is too busy to receive invalidations for a
    // while.
    let catalogue = CatalogueStatus {
        generation: Generation(1),
        database: DatabaseIdentity(1),
        read_at: Instant::now() + day,
    };
    let config = CacheConfig {
        catalogue: Some(CatalogueStatusSource::new(move || Some(catalogue))),
        lifetimes: LifetimesByKind { lookup: lifetimes, ..LifetimesByKind::default() },
        invalidations: server.patient_config(),
        ..CacheConfig::default()
    };
    let cache = Cache::new(config, CacheConnections::disabled()).unwrap();
    // What was read before the cache listens is read again.
    while !cache.is_listening() || cache.get_from_memory(&key(0)) == MemoryLookup::Miss {
        tokio::time::sleep(Duration::from_millis(5)).await;
        cache.get_or_fill(key(0), || async { Ok(response(0)) }).await.unwrap();
    }
    for number in 1..2 * KEYS {
        cache.get_or_fill(key(number), move || async move { Ok(response(number)) }).await.unwrap();
    }
    cache
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
    CacheKey::lookup(NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
}
