//! Redis killed, frozen, flushed, full. A request waits little, limits stay bounded, and all comes back by itself.

use std::time::Duration;

use chart_index_ratelimit::{Group, Limiter, LimiterConfig};
use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConnection};
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::{PATIENCE, address, config, replica};

const LIMIT: u32 = 10;

fn minute() -> LimiterConfig {
    config(LIMIT, Duration::from_mins(1), "rl2:")
}

/// Asks this often, one after the other; how many passed, and the longest that one took.
async fn asked(limiter: &Limiter, who: u32, times: usize) -> (usize, Duration) {
    let (mut admitted, mut longest) = (0, Duration::ZERO);
    for _ in 0..times {
        let begun = Instant::now();
        admitted += usize::from(limiter.check(Group::Lookup, address(who)).await.is_admitted());
        longest = longest.max(begun.elapsed());
    }
    (admitted, longest)
}

/// Redis decides again.
async fn is_back(limiter: &Limiter) {
    wait_for_state(limiter.connection(), ConnectionState::Connected).await;
    let before = limiter.counts();
    // On a busy machine one answer may still come too late.
    let back = async {
        while limiter.counts().by_redis == before.by_redis {
            let _ = limiter.check(Group::Detail, address(fastrand::u32(..))).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), back).await.expect("redis decides again");
}

/// While Redis is away: nobody waits, and this replica admits its limit and no more.
async fn limits_alone_without_waiting(limiter: &Limiter, who: u32) {
    let begun = Instant::now();
    let (admitted, _) = asked(limiter, who, 1_000).await;
    assert_eq!(admitted, LIMIT as usize);
    assert!(begun.elapsed() < Duration::from_millis(500), "1,000 requests took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_redis_costs_nothing_and_comes_back() {
    let mut server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    let (admitted, _) = asked(&limiter, 1, 5).await;
    assert_eq!(admitted, 5);
    server.kill();
    let (admitted, longest) = asked(&limiter, 1, 20).await;
    // Whoever asks a server that does not answer is decided on by this replica alone, which has counted none so far.
    assert_eq!(admitted, LIMIT as usize, "neither more than the limit nor a refusal below it");
    assert!(longest < PATIENCE, "the slowest took {longest:?}");
    wait_for_state(limiter.connection(), ConnectionState::Unavailable).await;
    limits_alone_without_waiting(&limiter, 2).await;
    server.restart();
    is_back(&limiter).await;
    let (admitted, _) = asked(&limiter, 3, 20).await;
    assert_eq!(admitted, LIMIT as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_redis_costs_a_request_its_time_and_then_nothing() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    assert_eq!(asked(&limiter, 1, 1).await.0, 1);
    server.freeze();
    // A crowd that is under way when it happens, then one after the other.
    let begun = Instant::now();
    join_all((0..200).map(|who| limiter.check(Group::Lookup, address(100 + who)))).await;
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let (admitted, longest) = asked(&limiter, 1, 20).await;
    // Whoever asks a server that does not answer is decided on by this replica alone, which has counted none so far.
    assert_eq!(admitted, LIMIT as usize, "neither more than the limit nor a refusal below it");
    assert!(longest < PATIENCE, "the slowest took {longest:?}");
    assert_eq!(limiter.connection().state(), ConnectionState::Unavailable);
    limits_alone_without_waiting(&limiter, 2).await;
    server.thaw();
    is_back(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_redis_is_left_alone_until_it_is_fast_again() {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    let limiter = replica(&minute(), server.config()).await;
    // Twelve naps of a quarter of a second each, back to back: Redis answers, but never in time.
    let mut connection = server.connection().await;
    let mut naps = redis::pipe();
    for _ in 0..12 {
        naps.cmd("DEBUG").arg("SLEEP").arg("0.25");
    }
    let napping = tokio::spawn(async move {
        let _: Result<(), _> = naps.exec_async(&mut connection).await;
    });
    while limiter.connection().state() == ConnectionState::Connected {
        assert!(asked(&limiter, 1, 1).await.1 < PATIENCE);
    }
    limits_alone_without_waiting(&limiter, 2).await;
    napping.await.unwrap();
    is_back(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_redis_at_the_start_the_first_request_waits_no_longer_than_any_other() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let limiter = Limiter::new(minute(), RedisConnection::connect(server.config()).unwrap());
    let (admitted, longest) = asked(&limiter, 1, 50).await;
    assert_eq!(admitted, LIMIT as usize);
    assert!(longest < PATIENCE, "{longest:?}");
    server.restart();
    is_back(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_request_waits_for_the_connection_rather_than_decide_alone() {
    let server = RedisServer::start(&[]);
    let link = RedisConnection::connect(server.patient_config()).unwrap();
    assert_eq!(link.state(), ConnectionState::Connecting);
    let limiter = Limiter::new(minute(), link);
    assert_eq!(asked(&limiter, 1, 1).await.0, 1);
    assert_eq!((limiter.counts().by_redis, limiter.counts().by_stand_in), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_opened_again() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    for _ in 0..3 {
        let mut connection = server.connection().await;
        cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec_async(&mut connection).await.unwrap();
        let (_, longest) = asked(&limiter, 1, 20).await;
        assert!(longest < PATIENCE, "{longest:?}");
        is_back(&limiter).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_redis_admits_the_limit_once_more_and_no_refusal_is_forgotten() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.patient_config()).await;
    assert_eq!(asked(&limiter, 1, 9).await.0, 9);
    assert_eq!(asked(&limiter, 2, 20).await.0, LIMIT as usize);
    cmd("FLUSHALL").exec_async(&mut server.connection().await).await.unwrap();
    assert_eq!(asked(&limiter, 1, 20).await.0, LIMIT as usize);
    assert_eq!(asked(&limiter, 2, 20).await.0, 0, "the refusal is remembered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_leaves_each_replica_its_own_limit() {
    let server = RedisServer::start(&["--maxmemory-policy", "noeviction"]);
    let limiter = replica(&minute(), server.patient_config()).await;
    let mut connection = server.connection().await;
    assert_eq!(asked(&limiter, 1, 20).await.0, LIMIT as usize);
    cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec_async(&mut connection).await.unwrap();
    assert_eq!(asked(&limiter, 1, 20).await.0, 0, "what was counted still counts");
    assert_eq!(asked(&limiter, 2, 50).await.0, LIMIT as usize);
    assert!(limiter.counts().by_stand_in > 0);
    assert_eq!(limiter.connection().state(), ConnectionState::Connected, "redis is full, not away");
    cmd("CONFIG").arg("SET").arg("maxmemory").arg("0").exec_async(&mut connection).await.unwrap();
    is_back(&limiter).await;
}
