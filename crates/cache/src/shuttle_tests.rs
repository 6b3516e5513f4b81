//! Reads and polls under random schedules of their threads:
//! `cargo test -p chart-index-cache --features shuttle --lib shuttle_tests`.

#![expect(clippy::unwrap_used, reason = "a function of a test fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use chart_index_domain::{CatalogueChange, CataloguePoll, Entity, Lineage, NoteHash, Origin, Position};
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::clock::{Now, real_ms};
use crate::recent_changes::Currency;
use crate::{
    Cache, CacheConfig, CacheConnections, CacheKey, CachedResponse, Clock, MemoryLookup, RecentChanges,
};

const SCHEDULES: usize = 5_000;
const CHANGED: NoteHash = NoteHash::from_bytes([1; 32]);
const UNCHANGED: NoteHash = NoteHash::from_bytes([2; 32]);

fn poll(origin: u64, sequence: u64, changed: bool) -> CataloguePoll {
    let position = Position { origin: Origin(origin), sequence };
    let entity = Entity::Chart(CHANGED);
    let change = changed.then_some(CatalogueChange { sequence, entity, last_removal: 0 });
    CataloguePoll {
        lineage: Lineage::from_bytes([1; 8]),
        position,
        last_removal: 0,
        changes: change.into_iter().collect(),
        complete_after: 0,
    }
}

/// A store with the number of its reads, and a cache in front of it.
struct Replica {
    cache: Arc<Cache>,
    changes: Arc<RecentChanges>,
    version: AtomicU64,
    reads: AtomicU64,
}

impl Replica {
    fn new() -> Arc<Self> {
        let changes = Arc::new(RecentChanges::new());
        changes.apply(poll(1, 1, false), Instant::now() + Duration::from_hours(1));
        let config =
            CacheConfig { changes: Some(Arc::clone(&changes)), bytes: 1 << 20, ..CacheConfig::default() };
        let cache = Cache::new(config, CacheConnections::disabled());
        Arc::new(Self { cache, changes, version: AtomicU64::new(0), reads: AtomicU64::new(0) })
    }

    /// Reads the chart that changes.
    fn read(self: &Arc<Self>) -> CachedResponse {
        let this = Arc::clone(self);
        let fill = async move || {
            this.reads.fetch_add(1, Ordering::SeqCst);
            let response = response(this.version.load(Ordering::SeqCst));
            shuttle::future::yield_now().await;
            Ok(response)
        };
        block_on(self.cache.get(CacheKey::lookup(CHANGED), fill)).unwrap()
    }
}

fn response(version: u64) -> CachedResponse {
    CachedResponse::found(version.to_string(), "")
}

/// Runs a test with random schedules, in the context of a Tokio runtime.
fn check(test: impl Fn() + Send + Sync + 'static) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    shuttle::check_random(test, SCHEDULES);
}

#[test]
fn concurrent_requests_share_one_fill() {
    check(|| {
        let replica = Replica::new();
        let requests = (0..3).map(|_| {
            let replica = Arc::clone(&replica);
            thread::spawn(move || assert_eq!(replica.read(), response(0)))
        });
        for request in requests.collect::<Vec<_>>() {
            request.join().unwrap();
        }
        assert_eq!(replica.reads.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn no_request_after_a_change_gets_an_earlier_response() {
    check(|| {
        let replica = Replica::new();
        let requests = (0..2).map(|_| {
            let replica = Arc::clone(&replica);
            thread::spawn(move || drop(replica.read()))
        });
        let requests: Vec<_> = requests.collect();
        replica.version.store(1, Ordering::SeqCst);
        replica.changes.apply(poll(1, 2, true), Instant::now() + Duration::from_hours(2));
        assert_eq!(replica.read(), response(1));
        for request in requests {
            request.join().unwrap();
        }
        let cached = replica.cache.get_from_memory(&CacheKey::lookup(CHANGED));
        assert_eq!(cached, MemoryLookup::Fresh(response(1)), "a fill that ends later is not cached");
        assert!(replica.reads.load(Ordering::SeqCst) <= 2, "one before the change, and one after it");
    });
}

/// The currency of both charts at the version of the first poll, after the second one, and during the third
/// one, which comes 10 seconds after the first.
fn during_a_poll(
    [first, second, third]: [CataloguePoll; 3],
    second_confirms: bool,
    inspect: impl Fn(Currency, Currency) + Send + Sync + 'static,
) {
    let inspect = Arc::new(inspect);
    check(move || {
        let (changes, began) = (Arc::new(RecentChanges::new()), Instant::now());
        let later = began + Duration::from_secs(10);
        let now = Now { real_ms: real_ms(later), ..Clock::default().now() };
        changes.apply(first.clone(), began);
        let version = changes.version();
        changes.apply(second.clone(), if second_confirms { later } else { began });
        let reader = {
            let (changes, inspect) = (Arc::clone(&changes), Arc::clone(&inspect));
            thread::spawn(move || {
                let currency = |hash| changes.currency(&CacheKey::lookup(hash), version, now);
                inspect(currency(CHANGED), currency(UNCHANGED));
            })
        };
        changes.apply(third.clone(), later);
        reader.join().unwrap();
    });
}

#[test]
fn poll_confirms_nothing_that_it_changes() {
    let polls = [poll(1, 1, false), poll(1, 1, false), poll(1, 2, true)];
    during_a_poll(polls, false, |changed, unchanged| {
        assert_ne!(changed, Currency::Current);
        assert_ne!(unchanged, Currency::Changed);
    });
}

#[test]
fn poll_of_another_origin_confirms_no_earlier_version() {
    let polls = [poll(1, 1, false), poll(1, 1, false), poll(2, 1, false)];
    during_a_poll(polls, false, |changed, unchanged| {
        assert_eq!([changed, unchanged], [Currency::Unknown; 2]);
    });
}

#[test]
fn poll_of_another_origin_hides_no_change() {
    let polls = [poll(1, 1, false), poll(1, 2, true), poll(2, 1, false)];
    during_a_poll(polls, true, |changed, unchanged| {
        assert_ne!(changed, Currency::Current);
        assert_ne!(unchanged, Currency::Changed);
    });
}
