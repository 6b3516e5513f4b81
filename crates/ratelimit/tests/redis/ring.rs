//! The ring of a window with many admissions. The tests write old values instead of waiting for minutes.

use std::ops::RangeInclusive;
use std::time::Duration;

use chart_index_ratelimit::{Decision, Group, Limiter, Scope};
use chart_index_redis::testing::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::cmd;

use crate::support::history::{History, admissions, info_number, now_us};
use crate::support::value::{ROW, header, ring, ring_length, row, time_of, times, unix_us};
use crate::support::{address, config, replica};

const WINDOW: Duration = Duration::from_mins(1);
const SECOND_US: u64 = 1_000_000;
/// The time that may pass between the writing of a value and a decision on it.
const SLACK: Duration = Duration::from_secs(10);

/// A server, replicas with these limits, and a connection to write values with.
async fn prepared<const N: usize>(limits: [u32; N]) -> (RedisServer, [Limiter; N], MultiplexedConnection) {
    let server = RedisServer::start(&[]);
    let mut replicas = Vec::new();
    for limit in limits {
        replicas.push(replica(&config(limit, WINDOW, "rl2:"), server.patient_config()).await);
    }
    let connection = server.connection().await;
    (server, replicas.try_into().unwrap(), connection)
}

fn key(client: u32) -> String {
    format!("rl2:l:{client:08x}")
}

async fn write(connection: &mut MultiplexedConnection, client: u32, value: &[u8]) {
    cmd("SET").arg(key(client)).arg(value).exec_async(connection).await.unwrap();
}

async fn stored(connection: &mut MultiplexedConnection, client: u32) -> Vec<u8> {
    cmd("GET").arg(key(client)).query_async(connection).await.unwrap()
}

async fn check(limiter: &Limiter, client: u32) -> Decision {
    limiter.check(Group::Lookup, address(client)).await
}

/// Sends requests until one is refused. Returns the number of admitted ones, and the wait of the refused one.
async fn admitted_in_a_row(limiter: &Limiter, client: u32) -> (usize, Duration) {
    for admitted in 0.. {
        if let Decision::Refused { retry_after, .. } = check(limiter, client).await {
            return (admitted, retry_after);
        }
    }
    unreachable!("the loop has no other end")
}

/// Times from this many seconds ago on, a millisecond apart.
fn times_at(seconds_ago: u64, number: usize) -> impl Iterator<Item = u64> {
    let start = now_us() - seconds_ago * SECOND_US;
    (start..).step_by(1_000).take(number).map(time_of)
}

/// The wait until an admission from this many seconds ago leaves the window.
fn leaves_after(seconds_ago: u64) -> RangeInclusive<Duration> {
    let wait = Duration::from_secs(WINDOW.as_secs() - seconds_ago);
    wait.saturating_sub(SLACK)..=wait
}

#[tokio::test]
async fn window_is_independent_of_the_head_of_the_ring() {
    const SLOTS: usize = 24;
    let (_server, [limiter], mut connection) = prepared([24]).await;
    let mut client = 0;
    for head in 0..SLOTS {
        for (left, counted) in
            [(0, 17), (0, 23), (1, 16), (1, 23), (5, 18), (6, 10), (8, 16), (23, 1), (24, 0)]
        {
            let before: Vec<u64> = times_at(70, left).chain(times_at(30, counted)).collect();
            write(&mut connection, client, &ring(SLOTS, head, &before)).await;
            let decision = check(&limiter, client).await;
            let case = format!("head {head}, {left} left, {counted} in the window: {decision:?}");
            let Decision::Admitted { remaining, reset_after, .. } = decision else { panic!("{case}") };
            assert_eq!(remaining as usize, SLOTS - counted - 1, "{case}");
            let oldest_ago = if counted == 0 { 0 } else { 30 };
            assert!(leaves_after(oldest_ago).contains(&reset_after), "{case}");
            let after = times(&stored(&mut connection, client).await);
            assert_eq!(after[..counted], before[left..], "{case}: the others are still there, in order");
            assert_eq!(after.len(), counted + 1, "{case}");
            client += 1;
        }
    }
}

#[tokio::test]
async fn full_ring_refuses_until_its_oldest_admission_leaves() {
    const SLOTS: usize = 20;
    let (_server, [limiter], mut connection) = prepared([20]).await;
    for head in 0..SLOTS {
        let client = u32::try_from(head).unwrap();
        let full: Vec<u64> = times_at(45, 1).chain(times_at(20, SLOTS - 1)).collect();
        let value = ring(SLOTS, head, &full);
        write(&mut connection, client, &value).await;
        let (admitted, wait) = admitted_in_a_row(&limiter, client).await;
        assert!(admitted == 0 && leaves_after(45).contains(&wait), "head {head}: {admitted}, {wait:?}");
        assert_eq!(stored(&mut connection, client).await, value, "a refusal writes nothing");
    }
}

/// Requests at the limit, until the ring has turned a hundred times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ring_stays_exact_over_a_hundred_turns() {
    const LIMIT: usize = 20;
    let window = Duration::from_millis(40);
    let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]);
    let limiter = replica(&config(20, window, "rl2:"), server.patient_config()).await;
    let (history, mut admitted) = (History::default(), 0);
    while admitted < 100 * LIMIT {
        match history.check(&limiter, address(1)).await {
            Decision::Admitted { .. } => admitted += 1,
            Decision::Refused { retry_after, .. } => tokio::time::sleep(retry_after).await,
        }
    }
    let logged = admissions(server.directory()).remove(&key(1)).unwrap();
    history.verify(address(1), &logged, LIMIT, window);
    let turned = info_number(&mut server.connection().await, "commandstats", "cmdstat_setrange:calls=").await;
    assert!(turned > 0, "the schedule fills a ring");
}

#[tokio::test]
async fn value_grows_with_its_admissions_up_to_the_limit() {
    let (_server, [limiter], mut connection) = prepared([240]).await;
    for count in 1..=240 {
        let decision = check(&limiter, 1).await;
        assert_eq!((decision.is_admitted(), decision.remaining()), (true, 240 - count));
        let (length, count) = (stored(&mut connection, 1).await.len(), count as usize);
        let bounds = match count {
            1..=ROW => 5 * count..=5 * count,
            _ => ring_length(count)..=ring_length(240.min(count * 3 / 2)),
        };
        assert!(bounds.contains(&length), "{count} admissions in {length} bytes");
    }
    assert_eq!(stored(&mut connection, 1).await.len(), ring_length(240));
    assert_eq!(admitted_in_a_row(&limiter, 1).await.0, 0);
}

#[tokio::test]
async fn nearly_empty_ring_becomes_a_row_and_a_ring_again() {
    let (_server, [limiter], mut connection) = prepared([240]).await;
    let before: Vec<u64> = times_at(61, 230).chain(times_at(5, 10)).collect();
    write(&mut connection, 1, &ring(240, 235, &before)).await;
    for count in 11..=ROW {
        assert_eq!(check(&limiter, 1).await.remaining() as usize, 240 - count);
        let value = stored(&mut connection, 1).await;
        assert_eq!((value.len(), &times(&value)[..10]), (5 * count, &before[230..]));
    }
    assert_eq!(admitted_in_a_row(&limiter, 1).await.0, 240 - ROW);
    assert_eq!(stored(&mut connection, 1).await.len(), ring_length(240));
}

/// So the cost of an admission does not depend on the limit.
#[tokio::test]
async fn full_window_is_not_read_or_written_as_a_whole() {
    let (server, [limiter], mut connection) = prepared([2_000]).await;
    let full: Vec<u64> = times_at(61, 1_000).chain(times_at(5, 1_000)).collect();
    write(&mut connection, 1, &ring(2_000, 1_777, &full)).await;
    let mut observer = server.connection().await;
    let mut calls = async |command: &str| {
        info_number(&mut observer, "commandstats", &format!("cmdstat_{command}:calls=")).await
    };
    let (written_whole, read) = (calls("set").await, calls("getrange").await);
    assert_eq!(check(&limiter, 1).await.remaining(), 999, "1,000 leave at once");
    assert_eq!(calls("set").await, written_whole);
    assert!(calls("getrange").await - read < 13, "each read is twice as long as the one before");

    let (slots_written, read) = (calls("setrange").await, calls("getrange").await);
    for remaining in (900..999).rev() {
        assert_eq!(check(&limiter, 1).await.remaining(), remaining);
    }
    assert_eq!(calls("set").await, written_whole);
    assert_eq!(calls("setrange").await - slots_written, 2 * 99, "a slot and the header");
    assert_eq!(calls("getrange").await - read, 99, "the header has the oldest time");
}

/// A window of a usual limit is small: reading it takes less time than a second command.
#[tokio::test]
async fn usual_window_is_read_by_the_first_command() {
    let (server, [limiter], mut connection) = prepared([240]).await;
    write(&mut connection, 1, &ring(240, 177, &times_at(5, 200).collect::<Vec<_>>())).await;
    let mut observer = server.connection().await;
    let mut calls = async |command: &str| {
        info_number(&mut observer, "commandstats", &format!("cmdstat_{command}:calls=")).await
    };
    let commands = ["set", "getrange", "strlen", "setrange"];
    let mut before = [0; 4];
    for (before, command) in before.iter_mut().zip(commands) {
        *before = calls(command).await;
    }
    for remaining in (20..40).rev() {
        assert_eq!(check(&limiter, 1).await.remaining(), remaining);
    }
    assert_eq!(check(&limiter, 2).await.remaining(), 239, "an address without a window");
    for ((before, command), expected) in before.into_iter().zip(commands).zip([21, 0, 0, 40]) {
        assert_eq!(calls(command).await - before, expected, "{command}");
    }
}

#[tokio::test]
async fn changing_limit_is_exact_each_time() {
    let (_server, [high, low], mut connection) = prepared([100, 30]).await;
    for (client, head) in [(1, 0), (2, 55), (3, 95)] {
        // 60 in the window. The lower limit has to wait for the 30th newest, which leaves in 40 seconds.
        let before: Vec<u64> = times_at(70, 3).chain(times_at(50, 30)).chain(times_at(20, 30)).collect();
        write(&mut connection, client, &ring(100, head, &before)).await;
        let (admitted, wait) = admitted_in_a_row(&low, client).await;
        assert!(admitted == 0 && leaves_after(20).contains(&wait), "{admitted}, {wait:?}");
        let (admitted, wait) = admitted_in_a_row(&high, client).await;
        assert!(admitted == 40 && leaves_after(50).contains(&wait), "{admitted}, {wait:?}");
        assert_eq!(times(&stored(&mut connection, client).await).len(), 100);
    }
    for (client, head) in [(4, 0), (5, 35), (6, 99)] {
        // The lower limit removes the times that have left the window; the higher one continues from there.
        let before: Vec<u64> = times_at(70, 40).chain(times_at(50, 20)).collect();
        write(&mut connection, client, &ring(100, head, &before)).await;
        assert_eq!(admitted_in_a_row(&low, client).await.0, 10);
        assert_eq!(times(&stored(&mut connection, client).await)[..20], before[40..]);
        let (admitted, wait) = admitted_in_a_row(&high, client).await;
        assert!(admitted == 70 && leaves_after(50).contains(&wait), "{admitted}, {wait:?}");
    }
}

#[tokio::test]
async fn ring_grows_for_a_higher_limit() {
    let (_server, [limiter], mut connection) = prepared([240]).await;
    for head in 0..30 {
        let client = u32::try_from(head).unwrap();
        let full: Vec<u64> = times_at(10, 30).collect();
        write(&mut connection, client, &ring(30, head, &full)).await;
        assert_eq!(check(&limiter, client).await.remaining(), 240 - 31);
        let value = stored(&mut connection, client).await;
        assert_eq!((value.len(), &times(&value)[..30]), (ring_length(46), full.as_slice()), "head {head}");
        assert_eq!(admitted_in_a_row(&limiter, client).await.0, 240 - 31);
        assert_eq!(times(&stored(&mut connection, client).await)[..30], full);
    }
}

#[tokio::test]
async fn invalid_header_counts_as_empty() {
    let (_server, [limiter], mut connection) = prepared([20]).await;
    let now = time_of(now_us());
    let slots = row(&[now; 40]);
    let headers = [(40, 20), (41, 1), (u32::MAX as usize, 20), (0, 41), (0, u32::MAX as usize), (3, 0)];
    let mut invalid: Vec<Vec<u8>> =
        headers.map(|(head, count)| [header(head, count, now), slots.clone()].concat()).to_vec();
    let valid = ring(40, 0, &[now; 20]);
    // Too short or too long by less than a slot; too short by whole slots, so that the header points behind the
    // end.
    invalid.extend([&valid[..valid.len() - 1], &[valid.as_slice(), b"x"].concat()].map(<[u8]>::to_vec));
    invalid.push(valid[..ring_length(19)].to_vec());
    invalid.extend([vec![0; 81], vec![255; 83], vec![0; 10_000], vec![255; 9_998]]);
    for (client, value) in (0..).zip(invalid) {
        write(&mut connection, client, &value).await;
        let case = format!("{} bytes, header {:?}", value.len(), &value[..13]);
        assert_eq!(check(&limiter, client).await.remaining(), 19, "{case}");
        assert_eq!(stored(&mut connection, client).await.len(), 5, "{case}: replaced");
        assert_eq!(admitted_in_a_row(&limiter, client).await.0, 19, "{case}");
    }
    assert_eq!(limiter.counts().by_local_window, 0);
}

#[tokio::test]
async fn ring_from_the_future_refuses_for_one_window() {
    let (_server, [limiter], mut connection) = prepared([20]).await;
    for head in [0, 7, 19] {
        let client = u32::try_from(head).unwrap();
        let future: Vec<u64> = (0..20).map(|number| time_of(now_us() + 3_600 * SECOND_US + number)).collect();
        write(&mut connection, client, &ring(20, head, &future)).await;
        let refused = check(&limiter, client).await;
        assert_eq!(
            refused,
            Decision::Refused { scope: Scope::Address, limit: refused.limit(), retry_after: WINDOW }
        );
        let after = times(&stored(&mut connection, client).await);
        assert_eq!((after.len(), after.first()), (20, after.last()), "all of them count as now");
        assert!(now_us() - unix_us(after[0], now_us()) < 10 * SECOND_US);
    }
}
