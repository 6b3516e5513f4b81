//! Redis killed, frozen, restarted, flushed; the store failing meanwhile.

use chart_index_redis::testing::{RedisServer, wait_for_state};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_cache::{CacheConfig, CatalogueStatus, CatalogueStatusSource, Invalidator, Lookup};
use chart_index_domain::search::Generation;
use chart_index_redis::ConnectionState;
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::{Down, IN_FORCE, PATIENCE, Replica, Store, eventually, key, version};

/// Reads cold keys one after the other; the longest that one took.
async fn slowest(replica: &Replica, keys: std::ops::Range<u64>, store: &Store) -> Duration {
    let mut longest = Duration::ZERO;
    for number in keys {
        let begun = Instant::now();
        assert_eq!(replica.read(key(number), store).await, version(0));
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// What one replica writes, another finds.
async fn is_back(server: &RedisServer, replica: &Replica, number: u64) {
    for connection in [&replica.connections.main, &replica.connections.rox] {
        wait_for_state(connection, ConnectionState::Connected).await;
    }
    replica.listens().await;
    replica.read(key(number), &Store::default()).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() > 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_redis_costs_little_and_comes_back() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::of(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    assert!(slowest(&replica, 10..60, &store).await < PATIENCE);
    wait_for_state(&replica.connections.main, ConnectionState::Unavailable).await;
    for _ in 0..1_000 {
        assert_eq!(replica.read(key(1), &store).await, version(0), "memory goes on");
    }
    server.restart();
    is_back(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_redis_costs_its_time_and_then_nothing() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::of(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.freeze();
    assert!(slowest(&replica, 10..30, &store).await < PATIENCE);
    assert_eq!(replica.connections.main.state(), ConnectionState::Unavailable);
    let begun = Instant::now();
    slowest(&replica, 30..80, &store).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "50 reads of 5 ms took {:?}", begun.elapsed());
    server.thaw();
    is_back(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_nothing_is_heard_a_change_is_in_force_within_five_seconds() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::of(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    store.update();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < IN_FORCE, "{took:?}");
    eventually(async || !replica.cache.is_listening()).await;
    // And while the store fails as well, there is an answer all the same.
    store.set_down(true);
    replica.clock.advance(Duration::from_secs(10));
    assert_eq!(replica.read(key(1), &store).await, version(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_redis_is_given_does_not_pile_up() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    server.freeze();
    let reads = (0..1_500).map(|number| {
        let store = store.clone();
        replica.cache.get_or_fill_without_redis(key(number), move || async move {
            let _counted = store.count();
            Ok::<_, Down>(version(0))
        })
    });
    for answer in join_all(reads).await {
        assert_eq!(answer.unwrap(), version(0));
    }
    assert_eq!(replica.cache.stats().dropped_writes, 1_500 - 1_024);
    server.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_feed_is_not_trusted() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::of(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.freeze();
    store.update();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < IN_FORCE, "{took:?}");
    server.thaw();
    is_back(&server, &replica, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_redis_is_filled_again() {
    let server = RedisServer::start(&[]);
    let (first, second) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    first.read(key(1), &store).await;
    let mut connection = server.connection().await;
    // Nobody waits for the write; after the flush it would bring the answer back.
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
    cmd("SCRIPT").arg("FLUSH").exec_async(&mut server.connection().await).await.unwrap();
    assert!(matches!(first.cache.get(&key(1)), Lookup::Fresh(_)), "memory does not depend on it");
    second.read(key(1), &store).await;
    assert_eq!(store.reads(), 2);
    is_back(&server, &second, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalidation_waits_for_redis_as_long_as_it_is_told() {
    let mut server = RedisServer::start(&[]);
    let (replica, store) = (Replica::of(&server).await, Store::default());
    replica.read(key(1), &store).await;
    server.kill();
    wait_for_state(&replica.connections.main, ConnectionState::Unavailable).await;
    let invalidator = Invalidator::new(&server.config(), "ci:1:").unwrap();
    invalidator.invalidate(&[key(1)], Duration::ZERO).await.unwrap_err();
    let patient =
        tokio::spawn(async move { invalidator.invalidate(&[key(1)], Duration::from_secs(20)).await });
    server.restart();
    patient.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_keeps_nothing_new_and_still_hears_of_changes() {
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
async fn without_a_redis_at_the_start_memory_and_store_do_the_work() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let replica = Replica::starting(&server.config(), &server, CacheConfig::default());
    let store = Store::default();
    assert!(slowest(&replica, 0..20, &store).await < PATIENCE);
    slowest(&replica, 0..20, &store).await;
    assert_eq!(store.reads(), 20);
    server.restart();
    is_back(&server, &replica, 100).await;
}

/// A replica that is told the generation of the catalogue, and what tells it.
async fn with_catalogue(server: &RedisServer) -> (Replica, impl Fn(u64) + use<>) {
    let generation = Arc::new(Mutex::new(1));
    let catalogue = CatalogueStatusSource::new({
        let generation = Arc::clone(&generation);
        move || {
            let generation = Generation(*generation.lock().unwrap());
            Some(CatalogueStatus { generation, read_at: std::time::Instant::now() })
        }
    });
    let config = CacheConfig { catalogue: Some(catalogue), ..CacheConfig::default() };
    let replica = Replica::with(server.config(), server, config).await;
    (replica, move |changed| *generation.lock().unwrap() = changed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_unavailable_an_unchanged_catalogue_keeps_answers_fresh() {
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
            assert_eq!(replica.cache.get(&key(number)), Lookup::Fresh(version(0)), "{number}");
        }
    }
    assert_eq!(store.reads(), 2);

    store.update();
    change(2);
    for number in [1, 2] {
        assert_eq!(replica.read(key(number), &store).await, version(1));
    }
    replica.clock.advance(Duration::from_mins(5));
    assert_eq!(replica.cache.get(&key(1)), Lookup::Fresh(version(1)), "until the next change");
    assert_eq!(store.reads(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_came_back_empty_costs_no_reads_of_an_unchanged_catalogue() {
    let mut server = RedisServer::start(&[]);
    let ((replica, _), store) = (with_catalogue(&server).await, Store::default());
    for number in 0..20 {
        replica.read(key(number), &store).await;
    }
    server.restart();
    eventually(async || server.cli(&["PUBSUB", "NUMSUB", "ci:1:invalidate"]).ends_with("\n1")).await;
    is_back(&server, &replica, 100).await;
    slowest(&replica, 0..20, &store).await;
    assert_eq!(store.reads(), 20);
}
