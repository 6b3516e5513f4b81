//! The number of commands, as Redis counts them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, FillError};
use chart_index_redis::testing::RedisServer;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::{Replica, Store, calls, eventually, hash, key, version};

/// A server that has the response of key 1, and a replica with that response in memory.
async fn warm() -> (RedisServer, Replica, Store) {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 1).await;
    (server, replica, store)
}

#[tokio::test]
async fn memory_hit_asks_redis_nothing() {
    let (server, replica, store) = warm().await;
    let before = calls(&server, "get").await;
    for _ in 0..100 {
        assert_eq!(replica.read(key(1), &store).await, version(0));
    }
    assert_eq!(calls(&server, "get").await, before);
}

#[tokio::test]
async fn requests_are_rejected_before_they_ask_redis() {
    let server = RedisServer::start(&[]);
    let config = CacheConfig {
        max_fills: NonZeroUsize::new(4).unwrap(),
        max_waiting_requests: NonZeroUsize::new(4 + 8).unwrap(),
        fill_permit_timeout: Duration::from_mins(1),
        fill_timeout: Duration::from_mins(1),
        ..CacheConfig::default()
    };
    let replica = Replica::with(server.patient_config(), config).await;
    let (store, gate) = (Store::default(), Arc::new(Semaphore::new(0)));
    let mut in_flight: JoinSet<_> = (1..=4)
        .map(|number| {
            let (cache, store, gate) = (replica.cache.clone(), store.clone(), Arc::clone(&gate));
            let fill = async move || {
                let _open = gate.acquire().await;
                store.read().await
            };
            async move { cache.get(key(number), fill).await.unwrap() }
        })
        .collect();
    eventually(async || replica.cache.stats().fills_in_flight[0] == 4).await;

    let before = calls(&server, "get").await;
    let read = |number| {
        let store = store.clone();
        replica.cache.get(key(number), || store.read())
    };
    let mut waiting: FuturesUnordered<_> = (11..=110).map(read).collect();
    for _ in 0..100 - 8 {
        let rejected = waiting.next().await.unwrap();
        assert!(matches!(rejected, Err(FillError::Overloaded)), "{rejected:?}");
    }
    gate.add_permits(4);
    while let Some(response) = waiting.next().await {
        assert_eq!(response.unwrap(), version(0));
    }
    assert_eq!(calls(&server, "get").await - before, 8);
    while in_flight.join_next().await.is_some() {}
}

#[tokio::test]
async fn rox_file_is_read_over_its_own_connection() {
    let (server, replica, store) = warm().await;
    let rox = CacheKey::rox(hash(1));
    let before = calls(&server, "get").await;
    for key in [key(2), rox] {
        assert_eq!(replica.read(key, &store).await, version(0));
    }
    assert_eq!(calls(&server, "get").await - before, 2);
    let mut connection = server.connection().await;
    let clients: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
    assert_eq!(clients.lines().filter(|client| client.contains(" cmd=get ")).count(), 2, "{clients}");
}
