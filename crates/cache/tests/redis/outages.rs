//! Redis killed, frozen, restarted or flushed, while the store works or fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_cache::{CacheConfig, CatalogueStatus, CatalogueStatusSource, Invalidator, MemoryLookup};
use chart_index_domain::search::{DatabaseIdentity, Generation};
use chart_index_redis::ConnectionState;
use chart_index_redis::testing::{RedisServer, wait_for_state};
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::{Down, MAX_WAIT, Replica, Store, TAKES_EFFECT_WITHIN, eventually, key, version};

/// Reads keys one after the other. Returns the duration of the slowest read.
async fn slowest(replica: &Replica, keys: std::ops::Range<u64>, store: &Store) -> Duration {
    let mut longest = Duration::ZERO;
    for number in keys {
        let started = Instant::now();
        assert_eq!(replica.read(key(number), store).await, version(0));
        longest = longest.max(started.elapsed());
    }
    longest
}

/// Waits until the replica writes to Redis and receives invalidations again.
async fn recovers(server: &RedisServer, replica: &Replica, number: u64) {
    for connection in [&replica.connections.main, &replica.connections.rox] {
        wait_for_state(connection, ConnectionState::Connected).await;
    }
    replica.wait_until_listening().await;
    replica.read(key(number), &Store::default()).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() > 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_redis_does_not_slow_requests_and_recovers() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::connected(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    assert!(slowest(&replica, 10..60, &store).await < MAX_WAIT);
    wait_for_state(&replica.connections.main, ConnectionState::Unavailable).await;
    for _ in 0..1_000 {
        assert_eq!(replica.read(key(1), &store).await, version(0), "memory still serves it");
    }
    server.restart();
    recovers(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_redis_costs_one_timeout_and_recovers() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::connected(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.freeze();
    assert!(slowest(&replica, 10..30, &store).await < MAX_WAIT);
    assert_eq!(replica.connections.main.state(), ConnectionState::Unavailable);
    let started = Instant::now();
    slowest(&replica, 30..80, &store).await;
    assert!(started.elapsed() < Duration::from_secs(2), "50 reads of 5 ms took {:?}", started.elapsed());
    server.thaw();
    recovers(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_takes_effect_in_5_s_without_invalidations() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::connected(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    store.update();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < TAKES_EFFECT_WITHIN, "{took:?}");
    eventually(async || !replica.cache.is_listening()).await;
    // While the store fails as well, the response is still served.
    store.set_down(true);
    replica.clock.advance(Duration::from_secs(10));
    assert_eq!(replica.read(key(1), &store).await, version(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_to_a_slow_redis_are_bounded() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    server.freeze();
    let reads = (0..1_500).map(|number| {
        let store = store.clone();
        replica.cache.get_or_fill_skipping_redis_read(key(number), move || async move {
            let _counted = store.count();
            Ok::<_, Down>(version(0))
        })
    });
    for response in join_all(reads).await {
        assert_eq!(response.unwrap(), version(0));
    }
    assert_eq!(replica.cache.stats().dropped_writes, 1_500 - 1_024);
    server.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_subscription_does_not_count_as_listening() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::connected(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.freeze();
    store.update();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < TAKES_EFFECT_WITHIN, "{took:?}");
    server.thaw();
    recovers(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_redis_is_filled_again() {
    let server = RedisServer::start(&[]);
    let (first, second) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    first.read(key(1), &store).await;
    let mut connection = server.connection().await;
    // The write happens in the background; after the flush it would bring the response back.
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
    cmd("SCRIPT").arg("FLUSH").exec_async(&mut server.connection().await).await.unwrap();
    assert!(
        matches!(first.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_)),
        "memory does not depend on redis"
    );
    second.read(key(1), &store).await;
    assert_eq!(store.reads(), 2);
    recovers(&server, &second, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalidation_retries_until_its_timeout() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::connected(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    wait_for_state(&replica.connections.main, ConnectionState::Unavailable).await;
    let invalidator = Invalidator::new(&server.config(), "ci:1:").unwrap();
    invalidator.invalidate(&[key(1)], Duration::ZERO).await.unwrap_err();
    let retrying =
        tokio::spawn(async move { invalidator.invalidate(&[key(1)], Duration::from_secs(20)).await });
    server.restart();
    retrying.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_redis_still_takes_invalidations() {
    let server = RedisServer::start(&["--maxmemory-policy", "noeviction"]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec_async(&mut connection).await.unwrap();
    slowest(&replica, 10..20, &store).await;
    store.update();
    let invalidator = Invalidator::new(&server.config(), "ci:1:").unwrap();
    invalidator.invalidate(&[key(1)], Duration::ZERO).await.unwrap();
    eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert_eq!(cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap(), 0);
    assert_eq!(replica.connections.main.state(), ConnectionState::Connected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cache_works_without_redis_at_the_start() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let replica = Replica::starting(&server.config(), &server, CacheConfig::default());
    let store = Store::default();
    assert!(slowest(&replica, 0..20, &store).await < MAX_WAIT);
    slowest(&replica, 0..20, &store).await;
    assert_eq!(store.reads(), 20);
    server.restart();
    recovers(&server, &replica, 100).await;
}

/// A replica that knows the generation of the catalogue, and a function to set that.
async fn with_catalogue(server: &RedisServer) -> (Replica, impl Fn(u64) + use<>) {
    let generation = Arc::new(Mutex::new(1));
    let catalogue = CatalogueStatusSource::new({
        let generation = Arc::clone(&generation);
        move || {
            let generation = Generation(*generation.lock().unwrap());
            let database = DatabaseIdentity(1);
            Some(CatalogueStatus { generation, database, read_at: std::time::Instant::now() })
        }
    });
    let config = CacheConfig { catalogue: Some(catalogue), ..CacheConfig::default() };
    let replica = Replica::with(server.config(), server, config).await;
    (replica, move |changed| *generation.lock().unwrap() = changed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_catalogue_keeps_entries_fresh_without_redis() {
    let mut server = RedisServer::start(&[]);
    let (other, _) = with_catalogue(&server).await;
    let (replica, change) = with_catalogue(&server).await;
    let store = Store::default();
    other.read(key(2), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    replica.read(key(1), &store).await;
    replica.read(key(2), &store).await;
    assert_eq!(replica.cache.stats().from_redis, 1, "the other replica read it");
    server.kill();
    eventually(async || !replica.cache.is_listening()).await;
    replica.clock.advance(Duration::from_mins(5));
    for _ in 0..100 {
        for number in [1, 2] {
            assert_eq!(
                replica.cache.get_from_memory(&key(number)),
                MemoryLookup::Fresh(version(0)),
                "{number}"
            );
        }
    }
    assert_eq!(store.reads(), 2);

    store.update();
    change(2);
    for number in [1, 2] {
        assert_eq!(replica.read(key(number), &store).await, version(1));
    }
    replica.clock.advance(Duration::from_mins(5));
    assert_eq!(
        replica.cache.get_from_memory(&key(1)),
        MemoryLookup::Fresh(version(1)),
        "until the next change"
    );
    assert_eq!(store.reads(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_redis_costs_no_reads_of_an_unchanged_catalogue() {
    let mut server = RedisServer::start(&[]);
    let ((replica, _), store) = (with_catalogue(&server).await, Store::default());
    for number in 0..20 {
        replica.read(key(number), &store).await;
    }
    server.restart();
    eventually(async || server.cli(&["PUBSUB", "NUMSUB", "ci:1:invalidate"]).ends_with("\n1")).await;
    recovers(&server, &replica, 100).await;
    slowest(&replica, 0..20, &store).await;
    assert_eq!(store.reads(), 20);
}
