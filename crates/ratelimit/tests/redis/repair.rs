//! Values that no script wrote, changed clocks and changed limits.

use std::time::Duration;

use chart_index_ratelimit::{Group, Limiter, Refusal, Scope};
use chart_index_redis::testing::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, pipe};
use tokio::time::sleep;

use crate::support::history::now_us;
use crate::support::{Replica, address, config, replica};

const WINDOW: Duration = Duration::from_millis(400);
const KEY: &str = "rl3:l:{qk}00000001";

/// A server, a replica with a limit of 5, and a connection to write values with.
async fn prepared() -> (RedisServer, Replica, MultiplexedConnection) {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(5, WINDOW, "rl3:"), server.patient_config()).await;
    let connection = server.connection().await;
    (server, limiter, connection)
}

/// Sends requests until one is refused. Returns the number of admitted ones.
async fn admitted_in_a_row(limiter: &Limiter) -> usize {
    for admitted in 0.. {
        if limiter.check(Group::Lookup, address(1)).await.is_err() {
            return admitted;
        }
    }
    unreachable!("the loop has no other end")
}

/// Replaces the value by this many admissions, a microsecond apart, that begin at an offset from now.
async fn write(connection: &mut MultiplexedConnection, offset_us: i64, number: u64) {
    let start = now_us().wrapping_add_signed(offset_us);
    let times: Vec<u64> = (start..start + number).collect();
    pipe().del(KEY).rpush(KEY, times).exec_async(connection).await.unwrap();
}

async fn length(connection: &mut MultiplexedConnection) -> usize {
    Cmd::llen(KEY).query_async(connection).await.unwrap()
}

#[tokio::test]
async fn value_of_another_type_is_replaced() {
    let (_server, limiter, mut connection) = prepared().await;
    for other in [Cmd::set(KEY, "text"), Cmd::hset(KEY, "field", "value"), Cmd::sadd(KEY, 1)] {
        Cmd::del(KEY).exec_async(&mut connection).await.unwrap();
        other.exec_async(&mut connection).await.unwrap();
        assert_eq!(admitted_in_a_row(&limiter).await, 5);
        sleep(WINDOW).await;
    }
    let text = ["a", "", "-1", "nan", "0x10", "b"];
    pipe().del(KEY).rpush(KEY, &text).exec_async(&mut connection).await.unwrap();
    assert_eq!(admitted_in_a_row(&limiter).await, 5, "a list without times");
    assert_eq!(limiter.counts().by_local_window, 0);
}

#[tokio::test]
async fn clock_set_back_by_an_hour_refuses_for_one_window() {
    let (_server, limiter, mut connection) = prepared().await;
    write(&mut connection, 3_600_000_000, 5).await;
    let refused = limiter.check(Group::Lookup, address(1)).await.unwrap_err();
    assert_eq!((refused.scope, refused.retry_after), (Scope::Address, WINDOW));
    sleep(WINDOW).await;
    assert_eq!(admitted_in_a_row(&limiter).await, 5);
}

#[tokio::test]
async fn replicas_with_different_limits_are_exact() {
    let (server, five, mut connection) = prepared().await;
    let three = replica(&config(3, WINDOW, "rl3:"), server.patient_config()).await;
    assert_eq!(admitted_in_a_row(&five).await, 5);
    assert_eq!(admitted_in_a_row(&three).await, 0, "five are more than three");
    sleep(WINDOW).await;
    assert_eq!(admitted_in_a_row(&three).await, 3);
    assert_eq!(admitted_in_a_row(&five).await, 2, "three of five are used");
    assert_eq!(length(&mut connection).await, 5);
}

/// The wait of the lower limit is until its own oldest admission leaves the window, not that of the higher one.
#[tokio::test]
async fn lowered_limit_waits_for_its_own_oldest_admission() {
    let (server, _five, mut connection) = prepared().await;
    let minute = Duration::from_mins(1);
    let three = replica(&config(3, minute, "rl3:"), server.patient_config()).await;
    write(&mut connection, -50_000_000, 2).await;
    let later = now_us() - 20_000_000;
    Cmd::rpush(KEY, &[later, later, later]).exec_async(&mut connection).await.unwrap();
    let Refusal { retry_after, .. } = three.check(Group::Lookup, address(1)).await.unwrap_err();
    assert!((Duration::from_secs(30)..=Duration::from_secs(40)).contains(&retry_after), "{retry_after:?}");
    assert_eq!(length(&mut connection).await, 5, "the higher limit needs all of them");
}

#[tokio::test]
async fn admissions_that_left_the_window_are_removed() {
    let (server, five, mut connection) = prepared().await;
    write(&mut connection, -900_000, 200).await;
    assert!(five.check(Group::Lookup, address(1)).await.is_ok());
    assert_eq!(length(&mut connection).await, 5, "at the limit, all others");

    let many = replica(&config(240, Duration::from_mins(1), "rl3:"), server.patient_config()).await;
    write(&mut connection, -61_000_000, 79).await;
    assert!(many.check(Group::Lookup, address(1)).await.is_ok());
    assert_eq!(length(&mut connection).await, 16, "below the limit, all but 15");
    for _ in 0..15 {
        assert!(many.check(Group::Lookup, address(1)).await.is_ok());
    }
    assert_eq!(admitted_in_a_row(&many).await, 240 - 16);
}

#[tokio::test]
async fn refusal_changes_nothing() {
    let (_server, limiter, mut connection) = prepared().await;
    assert_eq!(admitted_in_a_row(&limiter).await, 5);
    let before = state(&mut connection).await;
    let other = Limiter::new(config(5, WINDOW, "rl3:"), limiter.connection.clone());
    assert_eq!(admitted_in_a_row(&other).await, 0);
    assert_eq!(state(&mut connection).await, before);
}

/// The value of the key and the time of its expiry.
async fn state(connection: &mut MultiplexedConnection) -> (Vec<u64>, u64) {
    pipe().lrange(KEY, 0, -1).cmd("PEXPIRETIME").arg(KEY).query_async(connection).await.unwrap()
}
