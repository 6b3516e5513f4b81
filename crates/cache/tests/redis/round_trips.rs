//! The number of commands and round trips, as Redis counts them.

use std::num::{NonZeroU32, NonZeroUsize};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse};
use chart_index_ratelimit::{Limiter, LimiterConfig, Limits};
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, poll};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::{Rejection, Replica, Store, calls, eventually, hash, info, key, version};

/// The number of `EVALSHA` and `GET` calls.
async fn calls_so_far(server: &RedisServer) -> (u64, u64) {
    (calls(server, "evalsha").await, calls(server, "get").await)
}

/// A server that has cached the script and the response of key 1, and a replica with that response in memory.
async fn warm() -> (RedisServer, Replica, Store) {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read_limited(1, key(1), &store).await.unwrap();
    let mut connection = server.connection().await;
    eventually(async || redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 2).await;
    (server, replica, store)
}

#[tokio::test]
async fn memory_hit_asks_redis_for_the_limit_only() {
    let (server, replica, store) = warm().await;
    let before = calls_so_far(&server).await;
    for _ in 0..100 {
        assert_eq!(replica.read_limited(1, key(1), &store).await, Ok(version(0)));
    }
    let after = calls_so_far(&server).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (100, 0));
}

#[tokio::test]
async fn limit_and_redis_hit_share_one_round_trip() {
    let (server, _, store) = warm().await;
    let other = Replica::patient(&server).await;
    let before = calls_so_far(&server).await;
    let packets = info(&server, "stats", "total_reads_processed:").await;
    assert_eq!(other.read_limited(2, key(1), &store).await, Ok(version(0)));
    let packets = info(&server, "stats", "total_reads_processed:").await - packets;
    let after = calls_so_far(&server).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    // One for the pipeline and up to three for `INFO`; probes of five connections may add to these.
    assert!(packets <= 9, "{packets} reads");
    assert_eq!(store.reads(), 1);
}

#[tokio::test]
async fn cached_refusal_asks_redis_nothing() {
    let (server, replica, store) = warm().await;
    let limits = Limits::all(NonZeroU32::new(1).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, replica.connections.main.clone());
    let replica = Replica { limiter, ..replica };
    assert!(replica.read_limited(9, key(1), &store).await.is_ok());
    assert_eq!(replica.read_limited(9, key(2), &store).await, Err(Rejection::Refused), "refused by redis");
    let before = calls_so_far(&server).await;
    for _ in 0..100 {
        assert_eq!(replica.read_limited(9, key(2), &store).await, Err(Rejection::Refused));
    }
    assert_eq!(calls_so_far(&server).await, before);
    assert_eq!(store.reads(), 1, "key 2 was not read");
}

#[tokio::test]
async fn requests_are_rejected_before_they_ask_redis_or_not_at_all() {
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
            async move { cache.get_or_fill(key(number), fill).await.unwrap() }
        })
        .collect();
    eventually(async || replica.cache.stats().fills_in_flight[0] == 4).await;

    let before = calls_so_far(&server).await;
    let mut waiting: FuturesUnordered<_> =
        (11..=110).map(|client| replica.read_limited(client, key(client.into()), &store)).collect();
    for _ in 0..100 - 8 {
        assert_eq!(waiting.next().await.unwrap(), Err(Rejection::Overloaded));
    }
    gate.add_permits(4);
    while let Some(response) = waiting.next().await {
        assert_eq!(response, Ok(version(0)));
    }
    assert_eq!(calls_so_far(&server).await.1 - before.1, 8);
    while in_flight.join_next().await.is_some() {}
}

/// An error does not count.
#[tokio::test]
async fn older_response_under_overload_counts_against_the_limit() {
    let server = RedisServer::start(&[]);
    let one = NonZeroUsize::MIN;
    let config = CacheConfig { max_fills: one, max_waiting_requests: one, ..CacheConfig::default() };
    let replica = Replica::with(server.patient_config(), config).await;
    let limits = Limits::all(NonZeroU32::new(2).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, replica.connections.main.clone());
    let (replica, store) = (Replica { limiter, ..replica }, Store::default());
    replica.read(key(1), &store).await;
    replica.poll(2, &[1]);
    let mut slow = pin!(replica.cache.get_or_fill(key(2), std::future::pending::<Result<CachedResponse, _>>));
    let in_flight = async || {
        assert!(poll!(&mut slow).is_pending());
        replica.cache.stats().fills_in_flight[0] == 1
    };
    eventually(in_flight).await;
    for _ in 0..10 {
        assert_eq!(replica.read_limited(1, key(3), &store).await, Err(Rejection::Overloaded));
    }
    for expected in [Ok(version(0)), Ok(version(0)), Err(Rejection::Refused)] {
        assert_eq!(replica.read_limited(1, key(1), &store).await, expected);
    }
}

#[tokio::test]
async fn rox_file_is_read_over_its_own_connection() {
    let (server, replica, store) = warm().await;
    let rox = CacheKey::rox(hash(1));
    let before = calls_so_far(&server).await;
    assert_eq!(replica.read_limited(2, rox, &store).await, Ok(version(0)));
    let after = calls_so_far(&server).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    let mut connection = server.connection().await;
    let clients: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
    let sent = |command| clients.lines().filter(|client| client.contains(command)).count();
    assert_eq!((sent(" cmd=evalsha "), sent(" cmd=get ")), (1, 1), "{clients}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_rate_limited_misses_share_fills() {
    let server = RedisServer::start(&[]);
    let replicas = join_all((0..3).map(|_| Replica::patient(&server))).await;
    let store = Store::default();
    let reads =
        (0..1_000_u32).map(|client| replicas[client as usize % 3].read_limited(client, key(1), &store));
    assert!(join_all(reads).await.iter().all(|response| *response == Ok(version(0))));
    assert!((1..=3).contains(&store.reads()), "{} fills", store.reads());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_outage_falls_back_to_local_window_and_store() {
    let (mut server, replica, store) = warm().await;
    server.kill();
    let reads = (2..52).map(|number| replica.read_limited(7, key(number), &store));
    assert!(join_all(reads).await.iter().all(|response| *response == Ok(version(0))));
    assert!(replica.limiter.counts().by_local_window >= 49);
}
