//! Corrupt values, changed clocks and changed limits.

use std::time::Duration;

use chart_index_ratelimit::{Decision, Group, Limiter, Scope};
use chart_index_redis::testing::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::cmd;
use tokio::time::sleep;

use crate::support::history::now_us;
use crate::support::value::{ring, row, time_of};
use crate::support::{address, config, replica};

const WINDOW: Duration = Duration::from_millis(400);
const KEY: &str = "rl2:l:00000001";

/// A server, a replica with a limit of 5, and a connection to write values with.
async fn prepared() -> (RedisServer, Limiter, MultiplexedConnection) {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(5, WINDOW, "rl2:"), server.patient_config()).await;
    let connection = server.connection().await;
    (server, limiter, connection)
}

/// Sends requests until one is refused. Returns the number of admitted ones.
async fn admitted_in_a_row(limiter: &Limiter) -> usize {
    for admitted in 0.. {
        if !limiter.check(Group::Lookup, address(1)).await.is_admitted() {
            return admitted;
        }
    }
    unreachable!("the loop has no other end")
}

fn times_at(offsets_us: impl IntoIterator<Item = i64>) -> Vec<u64> {
    offsets_us.into_iter().map(|offset| time_of(now_us().wrapping_add_signed(offset))).collect()
}

fn random_times(number: usize) -> Vec<u64> {
    std::iter::repeat_with(|| time_of(fastrand::u64(..))).take(number).collect()
}

#[tokio::test]
async fn corrupt_value_is_replaced() {
    let (_server, limiter, mut connection) = prepared().await;
    for length in [1, 4, 6, 999] {
        let garbage: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(length).collect();
        cmd("SET").arg(KEY).arg(garbage).exec_async(&mut connection).await.unwrap();
        assert_eq!(admitted_in_a_row(&limiter).await, 5, "{length} bytes");
        sleep(WINDOW).await;
    }
    cmd("DEL").arg(KEY).exec_async(&mut connection).await.unwrap();
    cmd("LPUSH").arg(KEY).arg("foreign").exec_async(&mut connection).await.unwrap();
    assert_eq!(admitted_in_a_row(&limiter).await, 5, "a list");
    assert_eq!(limiter.counts().by_local_window, 0);
}

#[tokio::test]
async fn random_value_is_gone_within_two_windows() {
    let (_server, limiter, mut connection) = prepared().await;
    let garbage = [row(&random_times(5)), row(&random_times(16)), ring(40, 33, &random_times(30))];
    for garbage in garbage {
        cmd("SET").arg(KEY).arg(garbage).exec_async(&mut connection).await.unwrap();
        assert!(admitted_in_a_row(&limiter).await <= 5);
        sleep(WINDOW).await;
        assert!(admitted_in_a_row(&limiter).await <= 5);
        sleep(WINDOW).await;
        assert_eq!(admitted_in_a_row(&limiter).await, 5);
        sleep(WINDOW).await;
    }
}

#[tokio::test]
async fn clock_set_back_by_an_hour_refuses_for_one_window() {
    let (_server, limiter, mut connection) = prepared().await;
    let hour = 3_600_000_000;
    cmd("SET")
        .arg(KEY)
        .arg(row(&times_at((0..5).map(|number| hour + number))))
        .exec_async(&mut connection)
        .await
        .unwrap();
    let refused = limiter.check(Group::Lookup, address(1)).await;
    assert_eq!(
        refused,
        Decision::Refused { scope: Scope::Address, limit: refused.limit(), retry_after: WINDOW }
    );
    sleep(WINDOW).await;
    assert_eq!(admitted_in_a_row(&limiter).await, 5);
}

#[tokio::test]
async fn replicas_with_different_limits_are_exact() {
    let (server, five, mut connection) = prepared().await;
    let three = replica(&config(3, WINDOW, "rl2:"), server.patient_config()).await;
    assert_eq!(admitted_in_a_row(&five).await, 5);
    assert_eq!(admitted_in_a_row(&three).await, 0, "five are more than three");
    sleep(WINDOW).await;
    assert_eq!(admitted_in_a_row(&three).await, 3);
    assert_eq!(admitted_in_a_row(&five).await, 2, "three of five are used");
    let length: usize = cmd("STRLEN").arg(KEY).query_async(&mut connection).await.unwrap();
    assert_eq!(length, 5 * 5);

    // Admissions from two windows ago under a far higher limit are removed and do not count.
    let long_ago = ring(200, 150, &times_at((0..200).map(|number| -900_000 + number)));
    cmd("SET").arg(KEY).arg(long_ago).exec_async(&mut connection).await.unwrap();
    sleep(WINDOW).await;
    assert!(three.check(Group::Lookup, address(1)).await.is_admitted());
    let length: usize = cmd("STRLEN").arg(KEY).query_async(&mut connection).await.unwrap();
    assert_eq!(length, 5);
}

#[tokio::test]
async fn refusal_writes_nothing() {
    let (_server, limiter, mut connection) = prepared().await;
    assert_eq!(admitted_in_a_row(&limiter).await, 5);
    let before: (Vec<u8>, u64) = state(&mut connection).await;
    let other = Limiter::new(config(5, WINDOW, "rl2:"), limiter.connection().clone());
    assert_eq!(admitted_in_a_row(&other).await, 0);
    assert_eq!(state(&mut connection).await, before);
}

/// The value of the key and the time of its expiry.
async fn state(connection: &mut MultiplexedConnection) -> (Vec<u8>, u64) {
    redis::pipe().get(KEY).cmd("PEXPIRETIME").arg(KEY).query_async(connection).await.unwrap()
}
