//! Changes of the catalogue, and entries from before them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse, FillError, Filled, MemoryLookup};
use chart_index_domain::{Position, ReadError};
use chart_index_redis::testing::RedisServer;
use redis::cmd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{
    ORIGIN, Replica, Store, eventually, hash, key, polled, record, redis_key, version, wait_for_records,
};

/// Starts a read of a replica with this response, which continues when it is released.
async fn read_slowly(
    replica: &Replica,
    key: CacheKey,
    filled: impl Into<Filled>,
) -> (JoinHandle<CachedResponse>, Arc<Notify>) {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let fill = {
        let (started, release, filled) = (Arc::clone(&started), Arc::clone(&release), filled.into());
        async move {
            started.notify_one();
            release.notified().await;
            Ok(filled)
        }
    };
    let cache = replica.cache.clone();
    let read = tokio::spawn(async move { cache.get(key, || fill).await.unwrap() });
    started.notified().await;
    (read, release)
}

async fn fails(replica: &Replica, key: CacheKey, store: &Store) -> bool {
    let store = store.clone();
    matches!(replica.cache.get(key, || store.read()).await, Err(FillError::Failed(_)))
}

async fn write_record(server: &RedisServer, value: &[u8]) {
    cmd("SET").arg(redis_key(1)).arg(value).exec_async(&mut server.connection().await).await.unwrap();
}

#[tokio::test]
async fn change_is_in_force_on_replicas_that_know_of_it() {
    let server = RedisServer::start(&[]);
    let (here, there) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    let keys = [CacheKey::lookup(hash(1)), CacheKey::rox(hash(1)), CacheKey::preview(hash(1)), key(2)];
    for key in keys {
        here.read(key, &store).await;
        there.read(key, &store).await;
    }
    store.update();
    here.poll(2, &[1]);
    for key in keys {
        let changed = key != keys[3];
        assert_eq!(here.read(key, &store).await, version(changed.into()), "{key:?}");
        assert_eq!(there.read(key, &store).await, version(0), "{key:?}");
    }
    there.poll(2, &[1]);
    for key in &keys[..3] {
        assert_eq!(there.read(*key, &store).await, version(1), "{key:?}");
    }
}

#[tokio::test]
async fn entry_outlives_unrelated_changes() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    record(&server).await;
    for sequence in 2..100 {
        replica.poll(sequence, &[sequence]);
        assert_eq!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(version(0)));
    }
    let other = Replica::patient(&server).await;
    for sequence in 2..100 {
        other.poll(sequence, &[sequence]);
    }
    assert_eq!(other.read(key(1), &store).await, version(0));
    assert_eq!(store.reads(), 1, "also in redis");
}

#[tokio::test]
async fn late_write_of_an_old_record_is_not_served() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    let old = record(&server).await;
    store.update();
    replica.poll_removal(2, 1);
    assert_eq!(replica.read(key(1), &store).await, version(1));
    eventually(async || record(&server).await != old).await;

    write_record(&server, &old).await;
    let other = Replica::patient(&server).await;
    other.poll_removal(2, 1);
    store.set_down(true);
    assert!(fails(&other, key(1), &store).await, "not even while the store is down");
    store.set_down(false);
    assert_eq!(other.read(key(1), &store).await, version(1));
    // A read that waited for Redis brings it into memory no more.
    write_record(&server, &old).await;
    replica.clock.advance(Duration::from_mins(12));
    replica.read(key(1), &store).await;
    eventually(async || matches!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_))).await;
    assert_eq!(replica.read(key(1), &store).await, version(1));
}

#[tokio::test]
async fn record_of_another_origin_is_served_on_errors_only() {
    let server = RedisServer::start(&[]);
    let (there, store) = (Replica::patient(&server).await, Store::default());
    there.read(key(1), &store).await;
    record(&server).await;
    let here = Replica::patient(&server).await;
    here.poll_other_origin(1);
    store.set_down(true);
    assert_eq!(here.read(key(1), &store).await, version(0));
    store.set_down(false);
    store.update();
    here.clock.advance(Duration::from_secs(2));
    assert_eq!(here.read(key(1), &store).await, version(1));
    assert_eq!(here.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(version(1)));
    assert_eq!(there.read(key(1), &store).await, version(0));
}

#[tokio::test]
async fn record_from_a_clock_that_is_ahead_is_not_fresh() {
    let server = RedisServer::start(&[]);
    let (ahead, store) = (Replica::patient(&server).await, Store::default());
    ahead.clock.advance(Duration::from_secs(30));
    for key in [key(1), CacheKey::list(b"")] {
        ahead.read(key, &store).await;
        let here = Replica::patient(&server).await;
        wait_for_records(&server, 1).await;
        assert_eq!(here.read(key, &store).await, version(0), "current");
        cmd("FLUSHALL").exec_async(&mut server.connection().await).await.unwrap();
        here.poll_other_origin(2);
        assert_eq!(here.cache.get_from_memory(&key), MemoryLookup::Miss, "not for the time it is ahead");
    }
}

#[tokio::test]
async fn requests_do_not_join_a_fill_from_before_a_change() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    let (early, release) = read_slowly(&replica, key(1), version(0)).await;
    let (unrelated, release_unrelated) = read_slowly(&replica, key(2), version(0)).await;
    store.update();
    replica.poll(2, &[1]);
    assert_eq!(replica.read(key(1), &store).await, version(1));
    let joined =
        replica.cache.get(key(2), async || -> Result<CachedResponse, ReadError> { panic!("joined") });
    release_unrelated.notify_one();
    assert_eq!((joined.await.unwrap(), unrelated.await.unwrap()), (version(0), version(0)));
    release.notify_one();
    assert_eq!(early.await.unwrap(), version(0), "it started before the change");
    assert_eq!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(version(1)), "it is not cached");
    assert_eq!(store.reads(), 1);
}

#[tokio::test]
async fn fill_from_before_a_change_is_read_again() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    store.update();
    for poll in [(|replica| replica.poll(2, &[1])) as fn(&Replica), |replica| replica.poll_other_origin(2)] {
        let (early, release) = read_slowly(&replica, key(1), version(0)).await;
        poll(&replica);
        release.notify_one();
        early.await.unwrap();
        replica.clock.advance(Duration::from_secs(3));
        assert_eq!(replica.read(key(1), &store).await, version(1));
        // To read it again.
        replica.poll(3, &[1]);
        cmd("FLUSHALL").exec_async(&mut server.connection().await).await.unwrap();
    }
}

#[tokio::test]
async fn changed_entry_is_served_while_the_store_is_down_and_a_removed_one_is_not() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    for number in [1, 2] {
        replica.read(key(number), &store).await;
    }
    let list = CacheKey::list(b"a");
    replica.read(list, &store).await;
    store.update();
    replica.poll(2, &[1]);
    store.set_down(true);
    replica.clock.advance(Duration::from_secs(3));
    for key in [key(1), list] {
        assert_eq!(replica.read(key, &store).await, version(0), "{key:?}");
    }
    replica.poll_removal(3, 2);
    replica.clock.advance(Duration::from_secs(3));
    assert_eq!(replica.read(key(1), &store).await, version(0));
    for key in [key(2), list] {
        assert!(fails(&replica, key, &store).await, "{key:?}");
    }
    replica.poll_other_origin(3);
    assert!(fails(&replica, key(2), &store).await, "also without polls");
}

#[tokio::test]
async fn lists_are_served_during_an_outage_after_a_change() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    let keys = [CacheKey::list(b"a"), CacheKey::page(b"b")];
    for key in keys {
        replica.read(key, &store).await;
    }
    replica.poll(2, &[1]);
    store.update();
    store.set_down(true);
    replica.clock.advance(Duration::from_mins(50));
    for key in keys {
        assert_eq!(replica.cache.age(&key).unwrap().as_secs() / 60, 50);
        assert_eq!(replica.read(key, &store).await, version(0));
    }
    store.set_down(false);
    replica.clock.advance(Duration::from_secs(2));
    for key in keys {
        assert_eq!(replica.read(key, &store).await, version(1));
        assert_eq!(replica.cache.age(&key), None);
    }
}

#[tokio::test]
async fn list_of_an_engine_that_lags_has_its_position() {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.poll(2, &[1]);
    let list = |number| CacheKey::list(&[number]);
    let read_at = async |number, origin, sequence| {
        let position = Some(Position { origin, sequence });
        let filled = Filled { response: version(0), position };
        replica.cache.get(list(number), async || Ok(filled)).await.unwrap();
    };
    read_at(1, ORIGIN, 2).await;
    read_at(2, ORIGIN, 1).await;
    read_at(3, chart_index_domain::Origin(2), 2).await;
    // It was ahead of the last poll: whether the list has the change of the next one is not known.
    read_at(4, ORIGIN, 3).await;
    replica.clock.advance(Duration::from_millis(2_500));
    store.update();
    for (number, expected) in [(1, 0), (2, 1), (3, 1), (4, 0)] {
        assert_eq!(replica.read(list(number), &store).await, version(expected), "list {number}");
    }
    replica.poll(3, &[1]);
    assert_eq!(replica.read(list(4), &store).await, version(1));
}

#[tokio::test]
async fn change_is_in_force_in_5_s_without_polls() {
    let server = RedisServer::start(&[]);
    let replica = Replica::starting(&server.config(), CacheConfig::default());
    let (store, began) = (Store::default(), Instant::now());
    replica.changes.apply(polled(ORIGIN, 1, &[1]), began);
    replica.read(key(1), &store).await;
    store.update();
    eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // While the store fails as well, the response is still served.
    store.set_down(true);
    replica.clock.advance(Duration::from_secs(10));
    assert_eq!(replica.read(key(1), &store).await, version(1));
}
