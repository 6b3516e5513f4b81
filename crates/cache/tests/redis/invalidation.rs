//! Invalidation of both tiers, and of fills in flight.

use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse, Invalidator, MemoryLookup};
use chart_index_redis::Replication;
use chart_index_redis::testing::RedisServer;
use redis::cmd;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::{Replica, Store, TAKES_EFFECT_WITHIN, eventually, hash, key, redis_key, version};

fn invalidator(server: &RedisServer) -> Invalidator {
    Invalidator::new(&server.config(), CacheConfig::KEY_PREFIX).unwrap()
}

#[tokio::test]
async fn removal_takes_effect_in_redis_and_on_all_replicas() {
    let server = RedisServer::start(&[]);
    let (here, there) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let store = Store::default();
    let keys = CacheKey::all_of_chart(hash(1));
    for key in keys {
        here.read(key, &store).await;
        there.read(key, &store).await;
    }
    store.remove();
    invalidator(&server).invalidate(&keys, Duration::ZERO).await.unwrap();
    let value: Vec<u8> =
        cmd("GET").arg(redis_key(1)).query_async(&mut server.connection().await).await.unwrap();
    assert_eq!(value, b"\x00ci:invalidated");
    for key in keys {
        let took = eventually(async || there.cache.get_from_memory(&key) == MemoryLookup::Miss).await;
        assert!(took < TAKES_EFFECT_WITHIN, "{took:?}");
        assert_eq!(there.read(key, &store).await, CachedResponse::NotFound);
    }
}

#[tokio::test]
async fn fill_from_before_a_change_is_not_cached() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (started, release) = (Arc::clone(&started), Arc::clone(&release));
        async move {
            started.notify_one();
            release.notified().await;
            Ok(version(0))
        }
    };
    let cache = replica.cache.clone();
    let early = tokio::spawn(async move { cache.get_or_fill(key(1), || slow).await.unwrap() });
    started.notified().await;

    let store = Store::default();
    store.update();
    invalidator(&server).invalidate(&[key(1)], Duration::ZERO).await.unwrap();
    // Until the message is received, reads join the early fill, which completes only at the end of this test.
    eventually(async || {
        let read = timeout(Duration::from_millis(100), replica.read(key(1), &store));
        read.await.is_ok_and(|response| response == version(1))
    })
    .await;
    release.notify_one();
    assert_eq!(early.await.unwrap(), version(0), "it started before the change");
    assert_eq!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(version(1)));
    let late = Replica::patient(&server).await;
    assert_eq!(late.read(key(1), &store).await, version(1), "redis does not have the old response either");
}

#[tokio::test]
async fn marker_keeps_a_fill_from_before_the_change_out_of_redis() {
    let server = RedisServer::start(&[]);
    let (slow_replica, other) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (started, release) = (Arc::clone(&started), Arc::clone(&release));
        async move {
            started.notify_one();
            release.notified().await;
            Ok(version(0))
        }
    };
    let cache = slow_replica.cache.clone();
    let early = tokio::spawn(async move { cache.get_or_fill(key(1), || slow).await.unwrap() });
    started.notified().await;
    // Only the marker, without the message.
    let marker = b"\x00ci:invalidated";
    let mut connection = server.connection().await;
    cmd("SET").arg(redis_key(1)).arg(marker).arg("PX").arg(30_000).exec_async(&mut connection).await.unwrap();
    let before = crate::support::calls(&server, "eval").await;
    release.notify_one();
    early.await.unwrap();
    eventually(async || crate::support::calls(&server, "eval").await > before).await;
    let value: Vec<u8> = cmd("GET").arg(redis_key(1)).query_async(&mut connection).await.unwrap();
    assert_eq!(value, marker);
    let store = Store::default();
    store.update();
    assert_eq!(other.read(key(1), &store).await, version(1));
}

#[tokio::test]
async fn reconnected_listener_revalidates_everything() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").exec_async(&mut connection).await.unwrap();
    // While no one listens, the response is removed from Redis without a message.
    store.update();
    cmd("DEL").arg(redis_key(1)).exec_async(&mut connection).await.unwrap();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < TAKES_EFFECT_WITHIN, "{took:?}");
}

#[tokio::test]
async fn unknown_message_revalidates_everything() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    cmd("PUBLISH")
        .arg("ci:1:invalidate")
        .arg("from another version")
        .exec_async(&mut connection)
        .await
        .unwrap();
    eventually(async || replica.cache.get_from_memory(&key(1)) == MemoryLookup::Miss).await;
}

#[tokio::test]
async fn recheck_against_redis_repairs_a_lost_message() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    replica.clock.advance(Duration::from_secs(40));
    assert!(matches!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Stale(_)));
    replica.read(key(1), &store).await;
    eventually(async || matches!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_))).await;
    assert_eq!(store.reads(), 1, "redis still had it");
    store.update();
    cmd("DEL").arg(redis_key(1)).exec_async(&mut connection).await.unwrap();
    replica.clock.advance(Duration::from_secs(40));
    replica.read(key(1), &store).await;
    eventually(async || replica.cache.get_from_memory(&key(1)) == MemoryLookup::Fresh(version(1))).await;
}

/// A primary with one replica that is connected to it.
async fn replicated() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start(&[]);
    let replica = RedisServer::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port)]);
    eventually(async || replica.cli(&["INFO", "replication"]).contains("master_link_status:up")).await;
    eventually(async || primary.cli(&["INFO", "replication"]).contains("state=online")).await;
    (primary, replica)
}

#[tokio::test]
async fn confirmed_invalidation_survives_a_failover() {
    let (primary, replica) = replicated().await;
    let confirmed = invalidator(&primary).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 1, confirmed: 1 }));
    drop(primary);
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(replica.cli(&["GET", &redis_key(1)]).trim_start_matches('\0'), "ci:invalidated");
}

#[tokio::test]
async fn unconfirmed_replica_is_reported_in_time() {
    let (primary, replica) = replicated().await;
    replica.freeze();
    let started = tokio::time::Instant::now();
    let confirmed = invalidator(&primary).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 1, confirmed: 0 }));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    replica.thaw();
}

#[tokio::test]
async fn confirmed_invalidation_is_published_twice() {
    let server = RedisServer::start(&[]);
    let before = crate::support::calls(&server, "publish").await;
    let confirmed = invalidator(&server).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 0, confirmed: 0 }));
    assert_eq!(crate::support::calls(&server, "publish").await - before, 2);
}

#[tokio::test]
async fn disconnected_redis_replica_does_not_count_as_listening() {
    let (primary, replica) = replicated().await;
    let reader = Replica::patient(&replica).await;
    primary.freeze();
    replica.cli(&["CONFIG", "SET", "repl-timeout", "1"]);
    eventually(async || !reader.cache.is_listening()).await;
    primary.thaw();
    eventually(async || reader.cache.is_listening()).await;
}
