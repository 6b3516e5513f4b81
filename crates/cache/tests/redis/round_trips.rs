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

use crate::support::{Replica, Store, eventually, hash, key, version};

/// How long a queue may be used without being empty, before it rejects callers.
const MAX_BURST: Duration = Duration::from_millis(100);

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

    let before = server.calls("get");
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
    assert_eq!(server.calls("get") - before, 8);
    while in_flight.join_next().await.is_some() {}
}

/// A queue that has not been empty for more than a burst.
#[tokio::test]
async fn standing_queue_rejects_before_redis_is_asked() {
    let server = RedisServer::start(&[]);
    let config = CacheConfig {
        max_fills: NonZeroUsize::MIN,
        fill_permit_timeout: Duration::from_mins(1),
        fill_timeout: Duration::from_mins(1),
        ..CacheConfig::default()
    };
    let replica = Replica::with(server.patient_config(), config).await;
    let (store, gate) = (Store::default(), Arc::new(Semaphore::new(0)));
    let read = |number| {
        let (store, gate) = (store.clone(), Arc::clone(&gate));
        let fill = async move || {
            let _open = gate.acquire().await;
            store.read().await
        };
        replica.cache.get(key(number), fill)
    };
    // The first has the permit, the second waits for it.
    let mut accepted: FuturesUnordered<_> = [read(1), read(2)].into_iter().collect();
    let standing = tokio::time::timeout(2 * MAX_BURST, accepted.next()).await;
    assert!(standing.is_err(), "{standing:?}");
    assert_eq!(server.calls("get"), 2);
    for number in 11..=20 {
        let rejected = read(number).await;
        assert!(matches!(rejected, Err(FillError::Overloaded)), "{rejected:?}");
    }
    assert_eq!(server.calls("get"), 2);
    gate.add_permits(2);
    while let Some(response) = accepted.next().await {
        assert_eq!(response.unwrap(), version(0));
    }
}

#[tokio::test]
async fn rox_file_is_read_over_its_own_connection() {
    let server = RedisServer::start(&["--slowlog-log-slower-than", "0"]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    for key in [key(1), CacheKey::rox(hash(1))] {
        assert_eq!(replica.read(key, &store).await, version(0));
    }
    // The name of each command, its arguments, and the address of the client are on lines of their own.
    let log = server.cli(&["SLOWLOG", "GET", "128"]);
    let lines: Vec<&str> = log.lines().collect();
    let clients: Vec<&str> =
        lines.windows(3).filter(|lines| lines[0] == "GET").map(|lines| lines[2]).collect();
    assert!(clients.len() == 2 && clients[0] != clients[1], "{log}");
}
