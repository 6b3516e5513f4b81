//! How often Redis is asked, as Redis counts it.

use chart_index_redis::testing::RedisServer;
use std::num::NonZeroU32;

use chart_index_cache::{Admission, CacheKey, CachedResponse};
use chart_index_ratelimit::{Group, Limiter, LimiterConfig, Limits};
use futures_util::future::join_all;

use crate::support::{Replica, Store, address, calls, eventually, hash, info, key, version};

async fn admitted(replica: &Replica, who: u32, key: CacheKey, store: &Store) -> Option<CachedResponse> {
    let store = store.clone();
    let check = replica.limiter.prepare(Group::Lookup, address(who)).ok()?;
    match replica.cache.get_or_fill_rate_limited(&replica.limiter, check, key, || store.read()).await {
        Admission::Refused(_) => None,
        Admission::Admitted { response, .. } => Some(response.unwrap()),
    }
}

/// Calls of scripts by their digests, and of `GET`, which no script calls.
async fn asked(server: &RedisServer) -> (u64, u64) {
    (calls(server, "evalsha").await, calls(server, "get").await)
}

/// A server that knows both scripts, with the answer of key 1, and a replica that has it too.
async fn warm() -> (RedisServer, Replica, Store) {
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    admitted(&replica, 1, key(1), &store).await;
    let mut connection = server.connection().await;
    eventually(async || redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 2).await;
    (server, replica, store)
}

#[tokio::test]
async fn an_answer_in_memory_costs_the_limit_alone() {
    let (server, replica, store) = warm().await;
    let before = asked(&server).await;
    for _ in 0..100 {
        assert_eq!(admitted(&replica, 1, key(1), &store).await, Some(version(0)));
    }
    let after = asked(&server).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (100, 0));
}

#[tokio::test]
async fn a_limit_and_an_answer_from_redis_share_one_round_trip() {
    let (server, _, store) = warm().await;
    let fresh = Replica::patient(&server).await;
    let before = asked(&server).await;
    let packets = info(&server, "stats", "total_reads_processed:").await;
    assert_eq!(admitted(&fresh, 2, key(1), &store).await, Some(version(0)));
    let packets = info(&server, "stats", "total_reads_processed:").await - packets;
    let after = asked(&server).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    // One for the pipeline, up to three for the question itself; and heartbeats of five connections may fall between.
    assert!(packets <= 9, "{packets} reads");
    assert_eq!(store.reads(), 1);
}

#[tokio::test]
async fn a_remembered_refusal_costs_nothing_and_reads_nothing() {
    let (server, replica, store) = warm().await;
    let limits = Limits::all(NonZeroU32::new(1).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, replica.connections.main.clone());
    let replica = Replica { limiter, ..replica };
    assert!(admitted(&replica, 9, key(1), &store).await.is_some());
    assert_eq!(admitted(&replica, 9, key(2), &store).await, None, "refused by redis");
    let before = asked(&server).await;
    for _ in 0..100 {
        assert_eq!(admitted(&replica, 9, key(2), &store).await, None);
    }
    assert_eq!(asked(&server).await, before);
    assert_eq!(store.reads(), 1, "key 2 was not read");
}

#[tokio::test]
async fn a_rox_file_comes_over_a_connection_of_its_own() {
    let (server, replica, store) = warm().await;
    let rox = CacheKey::rox(hash(1));
    let before = asked(&server).await;
    assert_eq!(admitted(&replica, 2, rox, &store).await, Some(version(0)));
    let after = asked(&server).await;
    // The limit, and behind the answer the script that writes it.
    assert!((1..=2).contains(&(after.0 - before.0)) && after.1 - before.1 == 1, "{before:?} {after:?}");
    let mut connection = server.connection().await;
    eventually(async || redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == 4).await;
    let clients: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
    assert_eq!(clients.lines().filter(|client| client.contains(" cmd=evalsha ")).count(), 2, "{clients}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_admitted_reads_of_one_cold_key_on_three_replicas_are_three_fills_at_most() {
    let server = RedisServer::start(&[]);
    let replicas = join_all((0..3).map(|_| Replica::patient(&server))).await;
    let store = Store::default();
    let reads = (0..1_000_u32).map(|who| admitted(&replicas[who as usize % 3], who, key(1), &store));
    assert!(join_all(reads).await.iter().all(|answer| *answer == Some(version(0))));
    assert!((1..=3).contains(&store.reads()), "{} fills", store.reads());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_redis_away_the_stand_in_decides_and_the_store_answers() {
    let (mut server, replica, store) = warm().await;
    server.kill();
    let alone = (2..52).map(|number| admitted(&replica, 7, key(number), &store));
    assert!(join_all(alone).await.iter().all(|answer| *answer == Some(version(0))));
    assert!(replica.limiter.counts().by_stand_in >= 49);
}
