//! Reads of many responses at once.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse, FillError, MemoryLookup};
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use crate::support::{Replica, Store, eventually, key, version, wait_for_records};

fn keys(numbers: impl IntoIterator<Item = u64>) -> Vec<CacheKey> {
    numbers.into_iter().map(key).collect()
}

/// Reads a batch, and returns the positions that the fill was asked for, if it was.
async fn read(
    replica: &Replica,
    keys: &[CacheKey],
    store: &Store,
) -> (Result<Vec<CachedResponse>, FillError>, Option<Vec<usize>>) {
    let asked = Arc::new(Mutex::new(None));
    let fill = async |positions: Vec<usize>| {
        let responses = join_all(positions.iter().map(|_| store.clone().read())).await;
        *asked.lock().unwrap() = Some(positions);
        responses.into_iter().collect()
    };
    let responses = replica.cache.get_many(keys, fill).await;
    let asked = asked.lock().unwrap().take();
    (responses, asked)
}

#[tokio::test]
async fn batch_asks_memory_then_redis_then_the_store_once() {
    let server = RedisServer::start(&[]);
    let (here, there) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    for number in 0..6 {
        there.read(key(number), &store).await;
    }
    wait_for_records(&server, 6).await;
    for number in 0..3 {
        here.read(key(number), &store).await;
    }
    store.update();
    let (gets, calls_before) = (server.calls("get"), server.calls("mget"));
    // The same hash twice is allowed.
    let (responses, asked) = read(&here, &keys([0, 1, 2, 9, 3, 4, 5, 9, 8]), &store).await;
    assert_eq!(asked, Some(vec![3, 7, 8]));
    let (old, new) = (version(0), version(1));
    let expected = [&old, &old, &old, &new, &old, &old, &old, &new, &new];
    assert_eq!(responses.unwrap().iter().collect::<Vec<_>>(), expected);
    assert_eq!((server.calls("get"), server.calls("mget")), (gets, calls_before + 1));

    // They are cached like those of single reads, in memory and in Redis.
    assert_eq!(here.cache.get_from_memory(&key(9)), MemoryLookup::Fresh(version(1)));
    wait_for_records(&server, 8).await;
    let reads = store.reads();
    assert_eq!(there.read(key(8), &store).await, version(1));
    let (responses, asked) = read(&here, &keys([0, 9, 8]), &store).await;
    assert_eq!((responses.unwrap(), asked), (vec![version(0), version(1), version(1)], None));
    assert_eq!(store.reads(), reads, "all of them are cached");
}

#[tokio::test]
async fn batch_of_no_keys_asks_nobody() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (responses, asked) = read(&replica, &[], &Store::default()).await;
    assert_eq!((responses.unwrap(), asked), (Vec::new(), None));
}

#[tokio::test]
async fn batch_from_before_a_change_is_read_again() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let early = tokio::spawn({
        let (cache, started, release) = (replica.cache.clone(), Arc::clone(&started), Arc::clone(&release));
        async move {
            let fill = async |positions: Vec<usize>| {
                started.notify_one();
                release.notified().await;
                Ok(vec![version(0); positions.len()])
            };
            cache.get_many(&keys([1, 2]), fill).await.unwrap()
        }
    });
    started.notified().await;
    let store = Store::default();
    store.update();
    replica.poll(2, &[1]);
    release.notify_one();
    assert_eq!(early.await.unwrap(), [version(0), version(0)], "it started before the change");
    wait_for_records(&server, 2).await;
    let (responses, asked) = read(&replica, &keys([1, 2]), &store).await;
    assert_eq!((responses.unwrap(), asked), (vec![version(1), version(0)], Some(vec![0])));
}

#[tokio::test]
async fn failed_batch_has_older_responses_or_an_error() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    let (responses, _) = read(&replica, &keys([1, 2]), &store).await;
    assert_eq!(responses.unwrap().len(), 2);
    wait_for_records(&server, 2).await;
    store.set_down(true);
    replica.poll_other_origin(1);
    replica.clock.advance(Duration::from_secs(10));
    let (responses, asked) = read(&replica, &keys([1, 2]), &store).await;
    assert_eq!((responses.unwrap(), asked), (vec![version(0), version(0)], Some(vec![0, 1])));
    let (responses, _) = read(&replica, &keys([1, 3]), &store).await;
    assert!(matches!(responses, Err(FillError::Failed(_))), "{responses:?}");
}

#[tokio::test]
async fn hanging_batch_falls_back_to_older_responses() {
    let server = RedisServer::start(&[]);
    let config = CacheConfig { fill_timeout: Duration::from_secs(20), ..CacheConfig::default() };
    let replica = Replica::with(server.patient_config(), config).await;
    let (responses, _) = read(&replica, &keys([1, 2]), &Store::default()).await;
    assert_eq!(responses.unwrap().len(), 2);
    replica.clock.advance(Duration::from_secs(10));
    let hanging = |numbers| {
        let cache = replica.cache.clone();
        async move { cache.get_many(&keys(numbers), |_| std::future::pending()).await }
    };
    let started = Instant::now();
    assert_eq!(hanging([1, 2]).await.unwrap(), [version(0), version(0)]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let wait = Duration::from_millis(700);
    let mut without_an_older = pin!(hanging([1, 3]));
    assert!(timeout(wait, &mut without_an_older).await.is_err(), "it waits");
    replica.poll(2, &[1, 2]);
    let release = Notify::new();
    let slow = async |positions: Vec<usize>| {
        release.notified().await;
        Ok(vec![version(1); positions.len()])
    };
    let keys = keys([1, 2]);
    let mut of_slow_store = pin!(replica.cache.get_many(&keys, slow));
    assert!(timeout(wait, &mut of_slow_store).await.is_err(), "polls succeed");
    release.notify_one();
    assert_eq!(of_slow_store.await.unwrap(), [version(1), version(1)]);
}

#[tokio::test]
async fn batches_have_permits_of_their_own() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let permits = 2;
    let release = Arc::new(Semaphore::new(0));
    let mut batches = Vec::new();
    let in_flight = Arc::new(Mutex::new(0));
    for number in 0..permits * 2 {
        let (cache, release, in_flight) =
            (replica.cache.clone(), Arc::clone(&release), Arc::clone(&in_flight));
        batches.push(tokio::spawn(async move {
            let fill = async |positions: Vec<usize>| {
                *in_flight.lock().unwrap() += 1;
                drop(release.acquire().await.unwrap());
                Ok(vec![version(0); positions.len()])
            };
            cache.get_many(&keys([1_000 + number]), fill).await.unwrap()
        }));
    }
    eventually(async || *in_flight.lock().unwrap() == permits).await;
    let store = Store::default();
    assert_eq!(replica.read(key(1), &store).await, version(0), "single reads have others");
    assert_eq!(*in_flight.lock().unwrap(), permits, "the other batches wait");
    release.add_permits(1);
    for (batch, number) in join_all(batches).await.into_iter().zip(1_000..) {
        assert_eq!(batch.unwrap(), [version(0)]);
        assert_eq!(replica.cache.get_from_memory(&key(number)), MemoryLookup::Fresh(version(0)));
    }
}
