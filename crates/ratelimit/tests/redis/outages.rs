//! Redis killed, frozen, flushed or full: requests wait briefly, limits stay bounded, and Redis is used again
//! afterwards.

use std::time::Duration;

use chart_index_ratelimit::{Group, Limiter, LimiterConfig};
use chart_index_redis::ConnectionState;
use chart_index_redis::testing::{RedisServer, wait_for_state};
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::{MAX_WAIT, Replica, address, config, replica};

const LIMIT: u32 = 10;

fn minute() -> LimiterConfig {
    config(LIMIT, Duration::from_mins(1), "rl3:")
}

/// Sends requests one after the other. Returns the number of admitted ones, and the duration of the slowest
/// one.
async fn send(limiter: &Limiter, client: u32, times: usize) -> (usize, Duration) {
    let (mut admitted, mut longest) = (0, Duration::ZERO);
    for _ in 0..times {
        let started = Instant::now();
        admitted += usize::from(limiter.check(Group::Lookup, address(client)).await.is_ok());
        longest = longest.max(started.elapsed());
    }
    (admitted, longest)
}

/// Waits until Redis decides again.
async fn recovers(limiter: &Replica) {
    wait_for_state(&limiter.connection, ConnectionState::Connected).await;
    let before = limiter.counts();
    // On a busy machine some replies may still be too late.
    let recovered = async {
        while limiter.counts().by_redis == before.by_redis {
            let _ = limiter.check(Group::Detail, address(fastrand::u32(..))).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), recovered).await.expect("redis decides again");
}

/// Without Redis, requests do not wait, and this replica admits its limit and no more.
async fn limits_locally_without_waiting(limiter: &Limiter, client: u32) {
    let started = Instant::now();
    let (admitted, _) = send(limiter, client, 1_000).await;
    assert_eq!(admitted, LIMIT as usize);
    assert!(started.elapsed() < Duration::from_millis(500), "1,000 requests took {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_redis_does_not_slow_requests_and_recovers() {
    let mut server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    let (admitted, _) = send(&limiter, 1, 5).await;
    assert_eq!(admitted, 5);
    server.kill();
    let (admitted, longest) = send(&limiter, 1, 20).await;
    // The local window of this replica decides, which has counted no request so far.
    assert_eq!(admitted, LIMIT as usize, "neither more than the limit nor a refusal below it");
    assert!(longest < MAX_WAIT, "the slowest took {longest:?}");
    wait_for_state(&limiter.connection, ConnectionState::Unavailable).await;
    limits_locally_without_waiting(&limiter, 2).await;
    server.restart();
    recovers(&limiter).await;
    let (admitted, _) = send(&limiter, 3, 20).await;
    assert_eq!(admitted, LIMIT as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_redis_costs_one_timeout_and_recovers() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    assert_eq!(send(&limiter, 1, 1).await.0, 1);
    server.freeze();
    // First concurrent requests, then one after the other.
    let started = Instant::now();
    join_all((0..200).map(|client| limiter.check(Group::Lookup, address(100 + client)))).await;
    assert!(started.elapsed() < MAX_WAIT, "{:?}", started.elapsed());
    let (admitted, longest) = send(&limiter, 1, 20).await;
    // The local window of this replica decides, which has counted no request so far.
    assert_eq!(admitted, LIMIT as usize, "neither more than the limit nor a refusal below it");
    assert!(longest < MAX_WAIT, "the slowest took {longest:?}");
    assert_eq!(limiter.connection.state(), ConnectionState::Unavailable);
    limits_locally_without_waiting(&limiter, 2).await;
    server.thaw();
    recovers(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_redis_is_unavailable_until_it_is_fast_again() {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    let limiter = replica(&minute(), server.config()).await;
    // Pauses of a quarter of a second each, until they are stopped: Redis replies, but never in time.
    let mut connection = server.connection().await;
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let pausing = tokio::spawn(async move {
        while stopped.try_recv().is_err() {
            let pause = cmd("DEBUG").arg("SLEEP").arg("0.25").clone();
            pause.exec_async(&mut connection).await.unwrap();
        }
    });
    while limiter.connection.state() == ConnectionState::Connected {
        assert!(send(&limiter, 1, 1).await.1 < MAX_WAIT);
    }
    limits_locally_without_waiting(&limiter, 2).await;
    stop.send(()).unwrap();
    pausing.await.unwrap();
    recovers(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_missing_at_the_start_does_not_slow_requests() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let limiter = Replica::starting(&minute(), &server.config());
    let (admitted, longest) = send(&limiter, 1, 50).await;
    assert_eq!(admitted, LIMIT as usize);
    assert!(longest < MAX_WAIT, "{longest:?}");
    server.restart();
    recovers(&limiter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_request_waits_for_the_connection() {
    let server = RedisServer::start(&[]);
    let limiter = Replica::starting(&minute(), &server.patient_config());
    assert_eq!(limiter.connection.state(), ConnectionState::Connecting);
    assert_eq!(send(&limiter, 1, 1).await.0, 1);
    assert_eq!((limiter.counts().by_redis, limiter.counts().by_local_window), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connection_is_reopened() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.config()).await;
    for _ in 0..3 {
        let mut connection = server.connection().await;
        cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec_async(&mut connection).await.unwrap();
        let (_, longest) = send(&limiter, 1, 20).await;
        assert!(longest < MAX_WAIT, "{longest:?}");
        recovers(&limiter).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_redis_admits_the_limit_once_more() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&minute(), server.patient_config()).await;
    assert_eq!(send(&limiter, 1, 9).await.0, 9);
    assert_eq!(send(&limiter, 2, 20).await.0, LIMIT as usize);
    cmd("FLUSHALL").exec_async(&mut server.connection().await).await.unwrap();
    assert_eq!(send(&limiter, 1, 20).await.0, LIMIT as usize);
    assert_eq!(send(&limiter, 2, 20).await.0, 0, "the refusal is cached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_redis_falls_back_to_the_local_window() {
    let server = RedisServer::start(&["--maxmemory-policy", "noeviction"]);
    let limiter = replica(&minute(), server.patient_config()).await;
    let mut connection = server.connection().await;
    assert_eq!(send(&limiter, 1, 20).await.0, LIMIT as usize);
    cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec_async(&mut connection).await.unwrap();
    assert_eq!(send(&limiter, 1, 20).await.0, 0, "earlier admissions still count");
    assert_eq!(send(&limiter, 2, 50).await.0, LIMIT as usize);
    assert!(limiter.counts().by_local_window > 0);
    assert_eq!(limiter.connection.state(), ConnectionState::Connected, "redis is full, not unavailable");
    cmd("CONFIG").arg("SET").arg("maxmemory").arg("0").exec_async(&mut connection).await.unwrap();
    recovers(&limiter).await;
}
