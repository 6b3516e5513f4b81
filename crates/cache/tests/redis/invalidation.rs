//! What a change does to both tiers, and to the fills that began before it.

use chart_index_redis::testing::RedisServer;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse, Invalidator, Lookup};
use chart_index_redis::Replication;
use redis::cmd;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::{IN_FORCE, Replica, Store, eventually, hash, key, redis_key, version};

fn invalidator(server: &RedisServer) -> Invalidator {
    Invalidator::new(&server.config(), CacheConfig::KEY_PREFIX).unwrap()
}

#[tokio::test]
async fn a_removal_reaches_redis_at_once_and_the_other_replica_soon() {
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
        let took = eventually(async || there.cache.get(&key) == Lookup::Miss).await;
        assert!(took < IN_FORCE, "{took:?}");
        assert_eq!(there.read(key, &store).await, CachedResponse::NotFound);
    }
}

#[tokio::test]
async fn a_fill_that_began_before_the_change_brings_nothing_back() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        async move {
            begun.notify_one();
            go_on.notified().await;
            Ok(version(0))
        }
    };
    let cache = replica.cache.clone();
    let early = tokio::spawn(async move { cache.get_or_fill(key(1), || slow).await.unwrap() });
    begun.notified().await;

    let store = Store::default();
    store.update();
    invalidator(&server).invalidate(&[key(1)], Duration::ZERO).await.unwrap();
    // Until the message is there, a read joins the early one, and would wait for it as long as this test does. From
    // then on it does not.
    eventually(async || {
        let read = timeout(Duration::from_millis(100), replica.read(key(1), &store));
        read.await.is_ok_and(|answer| answer == version(1))
    })
    .await;
    go_on.notify_one();
    assert_eq!(early.await.unwrap(), version(0), "it asked before the change");
    assert_eq!(replica.cache.get(&key(1)), Lookup::Fresh(version(1)));
    let late = Replica::patient(&server).await;
    assert_eq!(late.read(key(1), &store).await, version(1), "nor is it in redis");
}

#[tokio::test]
async fn a_replica_that_does_not_hear_cannot_write_the_old_answer_to_redis() {
    let server = RedisServer::start(&[]);
    let (deaf, other) = (Replica::patient(&server).await, Replica::patient(&server).await);
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        async move {
            begun.notify_one();
            go_on.notified().await;
            Ok(version(0))
        }
    };
    let cache = deaf.cache.clone();
    let early = tokio::spawn(async move { cache.get_or_fill(key(1), || slow).await.unwrap() });
    begun.notified().await;
    // The mark alone, without the message.
    let mark = b"\x00ci:invalidated";
    let mut connection = server.connection().await;
    cmd("SET").arg(redis_key(1)).arg(mark).arg("PX").arg(30_000).exec_async(&mut connection).await.unwrap();
    let before = crate::support::calls(&server, "eval").await;
    go_on.notify_one();
    early.await.unwrap();
    eventually(async || crate::support::calls(&server, "eval").await > before).await;
    let value: Vec<u8> = cmd("GET").arg(redis_key(1)).query_async(&mut connection).await.unwrap();
    assert_eq!(value, mark);
    let store = Store::default();
    store.update();
    assert_eq!(other.read(key(1), &store).await, version(1));
}

#[tokio::test]
async fn a_feed_that_was_cut_off_leaves_nothing_in_memory_unchecked() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").exec_async(&mut connection).await.unwrap();
    // What happens while nobody listens: the answer leaves Redis, and no message tells of it.
    store.update();
    cmd("DEL").arg(redis_key(1)).exec_async(&mut connection).await.unwrap();
    let took = eventually(async || replica.read(key(1), &store).await == version(1)).await;
    assert!(took < IN_FORCE, "{took:?}");
}

#[tokio::test]
async fn a_message_that_is_not_understood_makes_everything_doubtful() {
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
    eventually(async || replica.cache.get(&key(1)) == Lookup::Miss).await;
}

#[tokio::test]
async fn a_lost_message_heals_by_the_check_against_redis() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    replica.clock.advance(Duration::from_secs(40));
    assert!(matches!(replica.cache.get(&key(1)), Lookup::Stale(_)));
    replica.read(key(1), &store).await;
    eventually(async || matches!(replica.cache.get(&key(1)), Lookup::Fresh(_))).await;
    assert_eq!(store.reads(), 1, "redis still had it");
    store.update();
    cmd("DEL").arg(redis_key(1)).exec_async(&mut connection).await.unwrap();
    replica.clock.advance(Duration::from_secs(40));
    replica.read(key(1), &store).await;
    eventually(async || replica.cache.get(&key(1)) == Lookup::Fresh(version(1))).await;
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
async fn a_confirmed_removal_outlasts_a_failover() {
    let (primary, replica) = replicated().await;
    let confirmed = invalidator(&primary).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 1, confirmed: 1 }));
    drop(primary);
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(replica.cli(&["GET", &redis_key(1)]).trim_start_matches('\0'), "ci:invalidated");
}

#[tokio::test]
async fn a_replica_that_does_not_confirm_is_reported_in_time() {
    let (primary, replica) = replicated().await;
    replica.freeze();
    let begun = tokio::time::Instant::now();
    let confirmed = invalidator(&primary).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 1, confirmed: 0 }));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    replica.thaw();
}

#[tokio::test]
async fn a_confirmed_removal_is_announced_twice() {
    let server = RedisServer::start(&[]);
    let before = crate::support::calls(&server, "publish").await;
    let confirmed = invalidator(&server).invalidate_and_confirm(&[key(1)], Duration::from_secs(10)).await;
    assert_eq!(confirmed.unwrap(), Some(Replication { replicas: 0, confirmed: 0 }));
    assert_eq!(crate::support::calls(&server, "publish").await - before, 2);
}

#[tokio::test]
async fn a_replica_cut_off_from_its_primary_does_not_count_as_listening() {
    let (primary, replica) = replicated().await;
    let reader = Replica::patient(&replica).await;
    primary.freeze();
    replica.cli(&["CONFIG", "SET", "repl-timeout", "1"]);
    eventually(async || !reader.cache.is_listening()).await;
    primary.thaw();
    eventually(async || reader.cache.is_listening()).await;
}
