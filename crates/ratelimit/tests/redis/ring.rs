//! The ring of a window with many admissions. Values are planted, so that minutes pass without waiting for them.

use chart_index_redis::testing::RedisServer;
use std::ops::RangeInclusive;
use std::time::Duration;

use chart_index_ratelimit::{Decision, Group, Limiter, Scope};
use redis::aio::MultiplexedConnection;
use redis::cmd;

use crate::support::history::{History, admissions, info_number, now_us};
use crate::support::value::{ROW, header, moment_us, ring, ring_length, row, time_of, times};
use crate::support::{address, config, replica};

const WINDOW: Duration = Duration::from_mins(1);
const SECOND_US: u64 = 1_000_000;
/// What may pass between the planting of a value and a decision on it.
const SLACK: Duration = Duration::from_secs(10);

/// A server, its replicas with these limits, and a connection to plant values with.
async fn planted<const N: usize>(limits: [u32; N]) -> (RedisServer, [Limiter; N], MultiplexedConnection) {
    let server = RedisServer::start(&[]);
    let mut replicas = Vec::new();
    for limit in limits {
        replicas.push(replica(&config(limit, WINDOW, "rl2:"), server.patient_config()).await);
    }
    let connection = server.connection().await;
    (server, replicas.try_into().unwrap(), connection)
}

fn key(who: u32) -> String {
    format!("rl2:l:{who:08x}")
}

async fn plant(connection: &mut MultiplexedConnection, who: u32, value: &[u8]) {
    cmd("SET").arg(key(who)).arg(value).exec_async(connection).await.unwrap();
}

async fn held(connection: &mut MultiplexedConnection, who: u32) -> Vec<u8> {
    cmd("GET").arg(key(who)).query_async(connection).await.unwrap()
}

async fn ask(limiter: &Limiter, who: u32) -> Decision {
    limiter.check(Group::Lookup, address(who)).await
}

/// Asks until a request is refused; how many passed, and how long the refused one has to wait.
async fn admitted_in_a_row(limiter: &Limiter, who: u32) -> (usize, Duration) {
    for admitted in 0.. {
        if let Decision::Refused { retry_after, .. } = ask(limiter, who).await {
            return (admitted, retry_after);
        }
    }
    unreachable!("the loop has no other end")
}

/// Moments that lie this many seconds back, and after each the next a millisecond later.
fn moments(seconds_ago: u64, number: usize) -> impl Iterator<Item = u64> {
    let begin = now_us() - seconds_ago * SECOND_US;
    (begin..).step_by(1_000).take(number).map(time_of)
}

/// A wait for what happened this many seconds ago to leave.
fn leaves_after(seconds_ago: u64) -> RangeInclusive<Duration> {
    let wait = Duration::from_secs(WINDOW.as_secs() - seconds_ago);
    wait.saturating_sub(SLACK)..=wait
}

#[tokio::test]
async fn wherever_the_ring_begins_the_window_is_the_same() {
    const SLOTS: usize = 24;
    let (_server, [limiter], mut connection) = planted([24]).await;
    let mut who = 0;
    for head in 0..SLOTS {
        for (left, live) in [(0, 17), (0, 23), (1, 16), (1, 23), (5, 18), (6, 10), (8, 16), (23, 1), (24, 0)]
        {
            let before: Vec<u64> = moments(70, left).chain(moments(30, live)).collect();
            plant(&mut connection, who, &ring(SLOTS, head, &before)).await;
            let decision = ask(&limiter, who).await;
            let case = format!("head {head}, {left} left, {live} live: {decision:?}");
            let Decision::Admitted { remaining, reset_after, .. } = decision else { panic!("{case}") };
            assert_eq!(remaining as usize, SLOTS - live - 1, "{case}");
            let oldest_ago = if live == 0 { 0 } else { 30 };
            assert!(leaves_after(oldest_ago).contains(&reset_after), "{case}");
            let after = times(&held(&mut connection, who).await);
            assert_eq!(after[..live], before[left..], "{case}: what counts is kept, in order");
            assert_eq!(after.len(), live + 1, "{case}");
            who += 1;
        }
    }
}

#[tokio::test]
async fn a_full_ring_refuses_until_its_oldest_leaves_wherever_it_begins() {
    const SLOTS: usize = 20;
    let (_server, [limiter], mut connection) = planted([20]).await;
    for head in 0..SLOTS {
        let who = u32::try_from(head).unwrap();
        let full: Vec<u64> = moments(45, 1).chain(moments(20, SLOTS - 1)).collect();
        let value = ring(SLOTS, head, &full);
        plant(&mut connection, who, &value).await;
        let (admitted, wait) = admitted_in_a_row(&limiter, who).await;
        assert!(admitted == 0 && leaves_after(45).contains(&wait), "head {head}: {admitted}, {wait:?}");
        assert_eq!(held(&mut connection, who).await, value, "a refusal writes nothing");
    }
}

/// At its limit all the time: the ring turns a hundred times, and the judge sees every admission.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_that_turns_a_hundred_times_stays_exact() {
    const LIMIT: usize = 20;
    let window = Duration::from_millis(40);
    let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]);
    let limiter = replica(&config(20, window, "rl2:"), server.patient_config()).await;
    let (history, mut admitted) = (History::default(), 0);
    while admitted < 100 * LIMIT {
        match history.ask(&limiter, address(1)).await {
            Decision::Admitted { .. } => admitted += 1,
            Decision::Refused { retry_after, .. } => tokio::time::sleep(retry_after).await,
        }
    }
    let logged = admissions(server.directory()).remove(&key(1)).unwrap();
    history.judge(address(1), &logged, LIMIT, window);
    let turned = info_number(&mut server.connection().await, "commandstats", "cmdstat_setrange:calls=").await;
    assert!(turned > 0, "the schedule reaches the ring");
}

#[tokio::test]
async fn memory_grows_with_use_and_is_exact_at_the_limit() {
    let (_server, [limiter], mut connection) = planted([240]).await;
    for count in 1..=240 {
        let decision = ask(&limiter, 1).await;
        assert_eq!((decision.is_admitted(), decision.remaining()), (true, 240 - count));
        let (length, count) = (held(&mut connection, 1).await.len(), count as usize);
        let bounds = match count {
            1..=ROW => 5 * count..=5 * count,
            _ => ring_length(count)..=ring_length(240.min(count * 3 / 2)),
        };
        assert!(bounds.contains(&length), "{count} held in {length} bytes");
    }
    assert_eq!(held(&mut connection, 1).await.len(), ring_length(240));
    assert_eq!(admitted_in_a_row(&limiter, 1).await.0, 0);
}

#[tokio::test]
async fn a_ring_that_empties_becomes_a_row_again_and_a_row_a_ring() {
    let (_server, [limiter], mut connection) = planted([240]).await;
    let before: Vec<u64> = moments(61, 230).chain(moments(5, 10)).collect();
    plant(&mut connection, 1, &ring(240, 235, &before)).await;
    for count in 11..=ROW {
        assert_eq!(ask(&limiter, 1).await.remaining() as usize, 240 - count);
        let value = held(&mut connection, 1).await;
        assert_eq!((value.len(), &times(&value)[..10]), (5 * count, &before[230..]));
    }
    assert_eq!(admitted_in_a_row(&limiter, 1).await.0, 240 - ROW);
    assert_eq!(held(&mut connection, 1).await.len(), ring_length(240));
}

/// The cost of an admission does not depend on the limit: no whole value is read or written.
#[tokio::test]
async fn a_full_window_is_neither_read_nor_written_whole() {
    let (server, [limiter], mut connection) = planted([1_000]).await;
    let full: Vec<u64> = moments(61, 500).chain(moments(5, 500)).collect();
    plant(&mut connection, 1, &ring(1_000, 777, &full)).await;
    let mut observer = server.connection().await;
    let mut calls = async |command: &str| {
        info_number(&mut observer, "commandstats", &format!("cmdstat_{command}:calls=")).await
    };
    let (written_whole, read) = (calls("set").await, calls("getrange").await);
    assert_eq!(ask(&limiter, 1).await.remaining(), 499, "500 leave at once");
    assert_eq!(calls("set").await, written_whole);
    assert!(calls("getrange").await - read < 12, "each reading is twice as long as the one before");

    let (slots_written, read) = (calls("setrange").await, calls("getrange").await);
    for remaining in (400..499).rev() {
        assert_eq!(ask(&limiter, 1).await.remaining(), remaining);
    }
    assert_eq!(calls("set").await, written_whole);
    assert_eq!(calls("setrange").await - slots_written, 2 * 99, "a slot and the header");
    assert_eq!(calls("getrange").await - read, 99, "the header has the oldest");
}

#[tokio::test]
async fn a_limit_that_goes_down_and_up_within_a_window_is_exact_each_time() {
    let (_server, [high, low], mut connection) = planted([100, 30]).await;
    for (who, head) in [(1, 0), (2, 55), (3, 95)] {
        // 60 that count, of which the 30th newest leaves in 40 seconds: the lower limit waits for that one.
        let before: Vec<u64> = moments(70, 3).chain(moments(50, 30)).chain(moments(20, 30)).collect();
        plant(&mut connection, who, &ring(100, head, &before)).await;
        let (admitted, wait) = admitted_in_a_row(&low, who).await;
        assert!(admitted == 0 && leaves_after(20).contains(&wait), "{admitted}, {wait:?}");
        let (admitted, wait) = admitted_in_a_row(&high, who).await;
        assert!(admitted == 40 && leaves_after(50).contains(&wait), "{admitted}, {wait:?}");
        assert_eq!(times(&held(&mut connection, who).await).len(), 100);
    }
    for (who, head) in [(4, 0), (5, 35), (6, 99)] {
        // Under the lower limit: what it no longer needs goes, and the higher one goes on from there.
        let before: Vec<u64> = moments(70, 40).chain(moments(50, 20)).collect();
        plant(&mut connection, who, &ring(100, head, &before)).await;
        assert_eq!(admitted_in_a_row(&low, who).await.0, 10);
        assert_eq!(times(&held(&mut connection, who).await)[..20], before[40..]);
        let (admitted, wait) = admitted_in_a_row(&high, who).await;
        assert!(admitted == 70 && leaves_after(50).contains(&wait), "{admitted}, {wait:?}");
    }
}

#[tokio::test]
async fn a_ring_grows_for_a_higher_limit_wherever_it_begins() {
    let (_server, [limiter], mut connection) = planted([240]).await;
    for head in 0..30 {
        let who = u32::try_from(head).unwrap();
        let full: Vec<u64> = moments(10, 30).collect();
        plant(&mut connection, who, &ring(30, head, &full)).await;
        assert_eq!(ask(&limiter, who).await.remaining(), 240 - 31);
        let value = held(&mut connection, who).await;
        assert_eq!((value.len(), &times(&value)[..30]), (ring_length(46), full.as_slice()), "head {head}");
        assert_eq!(admitted_in_a_row(&limiter, who).await.0, 240 - 31);
        assert_eq!(times(&held(&mut connection, who).await)[..30], full);
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_counts_as_none() {
    let (_server, [limiter], mut connection) = planted([20]).await;
    let now = time_of(now_us());
    let slots = row(&[now; 40]);
    let headers = [(40, 20), (41, 1), (u32::MAX as usize, 20), (0, 41), (0, u32::MAX as usize), (3, 0)];
    let mut damaged: Vec<Vec<u8>> =
        headers.map(|(head, count)| [header(head, count, now), slots.clone()].concat()).to_vec();
    let whole = ring(40, 0, &[now; 20]);
    // Cut off or too long by less than a slot; cut off by whole slots so that the header names what is not there.
    damaged.extend([&whole[..whole.len() - 1], &[whole.as_slice(), b"x"].concat()].map(<[u8]>::to_vec));
    damaged.push(whole[..ring_length(19)].to_vec());
    damaged.extend([vec![0; 81], vec![255; 83], vec![0; 10_000], vec![255; 9_998]]);
    for (who, value) in (0..).zip(damaged) {
        plant(&mut connection, who, &value).await;
        let case = format!("{} bytes, header {:?}", value.len(), &value[..13]);
        assert_eq!(ask(&limiter, who).await.remaining(), 19, "{case}");
        assert_eq!(held(&mut connection, who).await.len(), 5, "{case}: replaced");
        assert_eq!(admitted_in_a_row(&limiter, who).await.0, 19, "{case}");
    }
    assert_eq!(limiter.counts().by_stand_in, 0);
}

#[tokio::test]
async fn a_ring_from_the_future_refuses_for_one_window() {
    let (_server, [limiter], mut connection) = planted([20]).await;
    for head in [0, 7, 19] {
        let who = u32::try_from(head).unwrap();
        let future: Vec<u64> = (0..20).map(|number| time_of(now_us() + 3_600 * SECOND_US + number)).collect();
        plant(&mut connection, who, &ring(20, head, &future)).await;
        let refused = ask(&limiter, who).await;
        assert_eq!(
            refused,
            Decision::Refused { scope: Scope::Address, limit: refused.limit(), retry_after: WINDOW }
        );
        let after = times(&held(&mut connection, who).await);
        assert_eq!((after.len(), after.first()), (20, after.last()), "all of them happened just now");
        assert!(now_us() - moment_us(after[0], now_us()) < 10 * SECOND_US);
    }
}
