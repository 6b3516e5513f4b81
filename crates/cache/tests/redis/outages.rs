//! Redis killed, frozen, restarted or flushed, while the store works or fails.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, MemoryLookup};
use chart_index_domain::ReadError;
use chart_index_redis::ConnectionState;
use chart_index_redis::testing::{RedisServer, wait_for_state};
use futures_util::future::join_all;
use redis::cmd;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::support::{MAX_WAIT, Replica, Store, eventually, key, version, wait_for_records};

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

/// Waits until the replica writes to Redis again.
async fn recovers(server: &RedisServer, replica: &Replica, number: u64) {
    for connection in replica.connections() {
        wait_for_state(connection, ConnectionState::Connected).await;
    }
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
    // Longer than a response is used that is not known to be current.
    replica.clock.advance(Duration::from_secs(3));
    let reads = store.reads();
    for _ in 0..1_000 {
        assert_eq!(replica.read(key(1), &store).await, version(0));
    }
    server.restart();
    recovers(&server, &replica, 100).await;
    assert_eq!(replica.read(key(1), &store).await, version(0));
    assert_eq!(store.reads(), reads, "memory still serves it");
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
async fn writes_to_a_slow_redis_are_bounded() {
    let server = RedisServer::start(&[]);
    let all = NonZeroUsize::new(1_500).unwrap();
    let config = CacheConfig { max_fills: all, max_waiting_requests: all, ..CacheConfig::default() };
    let replica = Replica::with(server.patient_config(), config).await;
    let release = Arc::new(Semaphore::new(0));
    let reads = (0..1_500).map(|number| {
        let (cache, release) = (replica.cache.clone(), Arc::clone(&release));
        let fill = async move || {
            let _permit = release.acquire().await;
            Ok::<_, ReadError>(version(0))
        };
        tokio::spawn(async move { cache.get(key(number), fill).await })
    });
    let reads: Vec<_> = reads.collect();
    eventually(async || replica.cache.stats().fills_in_flight[0] == 1_500).await;
    server.freeze();
    release.add_permits(1_500);
    for response in join_all(reads).await {
        assert_eq!(response.unwrap().unwrap(), version(0));
    }
    // A write fails after a second, and makes room.
    let dropped = replica.cache.stats().dropped_writes;
    assert!((1..=1_500 - 1_024).contains(&dropped), "{dropped}");
    server.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_redis_is_filled_again() {
    let server = RedisServer::start(&[]);
    let (first, second) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    first.read(key(1), &store).await;
    // A write after the flush would bring the response back.
    wait_for_records(&server, 1).await;
    cmd("FLUSHALL").exec_async(&mut server.connection().await).await.unwrap();
    assert!(
        matches!(first.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_)),
        "memory does not depend on redis"
    );
    second.read(key(1), &store).await;
    assert_eq!(store.reads(), 2);
    recovers(&server, &second, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cache_works_without_redis_at_the_start() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let replica = Replica::starting(&server.config(), CacheConfig::default());
    replica.poll(1, &[]);
    let store = Store::default();
    assert!(slowest(&replica, 0..20, &store).await < MAX_WAIT);
    slowest(&replica, 0..20, &store).await;
    assert_eq!(store.reads(), 20);
    server.restart();
    recovers(&server, &replica, 100).await;
}
