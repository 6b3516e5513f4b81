//! Values in Redis that are not valid records.

use chart_index_redis::testing::RedisServer;
use redis::cmd;

use crate::support::{Replica, Store, eventually, key, record, redis_key, version};

/// What is no valid record, `redis_record.rs` says.
#[tokio::test]
async fn other_values_are_misses_and_are_replaced() {
    let server = RedisServer::start(&[]);
    Replica::patient(&server).await.read(key(1), &Store::default()).await;
    let intact = record(&server).await;
    let mut connection = server.connection().await;
    cmd("SET").arg(redis_key(1)).arg(&intact[1..]).exec_async(&mut connection).await.unwrap();
    is_replaced(&server, 1, "a part").await;
    cmd("SET").arg(redis_key(2)).arg(&intact).exec_async(&mut connection).await.unwrap();
    is_replaced(&server, 2, "of another key").await;
    cmd("DEL").arg(redis_key(1)).exec_async(&mut connection).await.unwrap();
    cmd("LPUSH").arg(redis_key(1)).arg("x").exec_async(&mut connection).await.unwrap();
    is_replaced(&server, 1, "a list").await;
}

/// A new replica reads the store and replaces the value; the next one reads Redis.
async fn is_replaced(server: &RedisServer, number: u64, what: &str) {
    let store = Store::default();
    let replica = Replica::patient(server).await;
    assert_eq!(replica.read(key(number), &store).await, version(0), "{what}");
    assert_eq!(store.reads(), 1, "{what}");
    let mut connection = server.connection().await;
    eventually(async || {
        let left: i64 = cmd("PTTL").arg(redis_key(number)).query_async(&mut connection).await.unwrap();
        left > 0
    })
    .await;
    Replica::patient(server).await.read(key(number), &store).await;
    assert_eq!(store.reads(), 1, "{what}");
}

#[tokio::test]
async fn record_ttl_is_an_hour_plus_or_minus_a_tenth() {
    let server = RedisServer::start(&[]);
    Replica::patient(&server).await.read(key(1), &Store::default()).await;
    let _ = record(&server).await;
    let left: i64 = cmd("PTTL").arg(redis_key(1)).query_async(&mut server.connection().await).await.unwrap();
    assert!((3_200_000..=3_960_000).contains(&left), "{left} ms");
}
