//! The number of commands and round trips, as Redis counts them.

use std::time::Duration;

use chart_index_ratelimit::Group;
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::sleep;

use crate::support::{address, config, replica, subnet};

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn cached_refusal_makes_no_round_trip() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(5, MINUTE, "rl3:"), server.patient_config()).await;
    for _ in 0..1_005 {
        let _ = limiter.check(Group::Rox, address(1)).await;
    }
    // The first call fails with NOSCRIPT, and is repeated with the script itself.
    let calls = (server.calls("evalsha"), server.calls("eval"));
    assert_eq!(calls, (6, 1), "five admissions and one refusal");
    assert_eq!((limiter.counts().by_redis, limiter.counts().from_memory), (6, 999));
}

#[tokio::test]
async fn redis_is_asked_only_when_it_may_admit() {
    let server = RedisServer::start(&[]);
    let window = Duration::from_millis(300);
    let limiter = replica(&config(1, window, "rl3:"), server.patient_config()).await;
    let mut waits = 0;
    for _ in 0..4 {
        assert!(limiter.check(Group::Rox, address(1)).await.is_ok());
        let refused = limiter.check(Group::Rox, address(1)).await;
        let retry_after = refused.expect_err("the window is full").retry_after;
        assert!(retry_after <= window, "{retry_after:?}");
        waits += 1;
        sleep(retry_after).await;
    }
    assert_eq!(limiter.counts().by_redis, 2 * waits);
}

#[tokio::test]
async fn concurrent_checks_make_one_call() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(2, MINUTE, "rl3:"), server.patient_config()).await;
    assert!(limiter.check(Group::Lookup, address(1)).await.is_ok());
    let before = server.calls("evalsha");
    // Three groups and both kinds of addresses; the first address is at its limit with the second request.
    let checks = [
        (Group::Lookup, address(1)),
        (Group::Lookup, address(1)),
        (Group::Rox, address(1)),
        (Group::List, subnet(1, 1)),
        (Group::Lookup, address(2)),
    ];
    let decisions = join_all(checks.map(|(group, address)| limiter.check(group, address))).await;
    assert_eq!(server.calls("evalsha") - before, 1);
    let admitted: Vec<_> = decisions.iter().map(Result::is_ok).collect();
    assert_eq!(admitted, [true, false, true, true, true]);
}

#[tokio::test]
async fn many_concurrent_checks_make_several_calls() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(1, MINUTE, "rl3:"), server.patient_config()).await;
    assert!(limiter.check(Group::Lookup, address(0)).await.is_ok());
    let before = server.calls("evalsha");
    let checks = (1..=200).map(|client| limiter.check(Group::Lookup, address(client)));
    assert!(join_all(checks).await.iter().all(Result::is_ok));
    assert_eq!(server.calls("evalsha") - before, 4, "at most 64 checks a call");
}

#[tokio::test]
async fn flushed_script_is_sent_again() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(10, MINUTE, "rl3:"), server.patient_config()).await;
    let mut connection = server.connection().await;
    for _ in 0..10 {
        cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection).await.unwrap();
        assert!(limiter.check(Group::List, address(1)).await.is_ok());
    }
    assert!(limiter.check(Group::List, address(1)).await.is_err());
    assert_eq!(limiter.counts().by_local_window, 0);
}
