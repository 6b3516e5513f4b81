//! Several replicas with one Redis, whose append-only file has all admissions to check their decisions against.

use std::sync::Arc;
use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Decision, Group};
use chart_index_redis::testing::RedisServer;
use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use crate::support::history::{History, admissions};
use crate::support::{Replica, address, config, key, replica};

const RECORDED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "no"];

async fn replicas(
    server: &RedisServer,
    count: usize,
    limit: u32,
    window: Duration,
    prefix: &str,
) -> Vec<Replica> {
    let config = config(limit, window, prefix);
    join_all((0..count).map(|_| replica(&config, server.patient_config()))).await
}

/// A client that sends bursts to any replica, with pauses of which many end close to the edge of the window.
async fn adversary(
    replicas: &[Replica],
    client: ClientAddress,
    history: &History,
    mut random: Rng,
    until: Instant,
) {
    while Instant::now() < until {
        let burst = (0..random.usize(1..25)).map(|_| history.check(random.choice(replicas).unwrap(), client));
        let decisions = join_all(burst.collect::<Vec<_>>()).await;
        let wait = decisions.iter().filter_map(wait_ms).min();
        match (random.u8(0..4), wait) {
            (0, _) | (_, None) => sleep(Duration::from_millis(random.u64(0..200))).await,
            (1, Some(millis)) => sleep(Duration::from_millis(millis.saturating_sub(random.u64(0..3)))).await,
            (2, Some(millis)) => sleep(Duration::from_millis(millis + random.u64(0..2))).await,
            (_, Some(_)) => {}
        }
    }
}

/// A client that waits for `Retry-After`: it is never refused twice in a row.
async fn polite(
    replicas: &[Replica],
    client: ClientAddress,
    history: &History,
    mut random: Rng,
    until: Instant,
) {
    let mut just_waited = false;
    while Instant::now() < until {
        let decision = history.check(random.choice(replicas).unwrap(), client).await;
        assert!(decision.is_ok() || !just_waited, "refused after Retry-After");
        just_waited = decision.is_err();
        if let Err(refusal) = decision {
            sleep(refusal.retry_after).await;
        }
    }
}

fn wait_ms(decision: &Decision) -> Option<u64> {
    u64::try_from(decision.err()?.retry_after.as_millis()).ok()
}

async fn attack(server: Arc<RedisServer>, seed: u64) {
    const LIMIT: u32 = 20;
    const WINDOW: Duration = Duration::from_millis(600);
    let prefix = format!("seed{seed}:");
    let replicas = replicas(&server, 3, LIMIT, WINDOW, &prefix).await;
    let (history, mut random) = (History::default(), Rng::with_seed(seed));
    let until = Instant::now() + 4 * WINDOW;
    let attackers =
        (0..4).map(|client| adversary(&replicas, address(client % 2), &history, random.fork(), until));
    let attackers = attackers.collect::<Vec<_>>();
    let polite = polite(&replicas, address(2), &history, random.fork(), until);
    tokio::join!(join_all(attackers), polite);

    let mut logged = admissions(server.directory());
    for client in 0..3 {
        let logged = logged.remove(&key(client).replace("rl3:", &prefix)).unwrap_or_default();
        history.verify(address(client), &logged, LIMIT as usize, WINDOW);
        assert!(logged.len() > LIMIT as usize, "the schedule reaches into a second window");
        assert!(history.decisions_on(address(client)).len() > logged.len(), "the schedule reaches the limit");
    }
    assert!(replicas.iter().all(|replica| replica.counts().by_local_window == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_schedules_are_limited_exactly() {
    let server = Arc::new(RedisServer::start(&RECORDED));
    // Four at a time: with more, the tests would be about the pauses of the machine.
    for seeds in [0..4, 4..8, 8..12, 12..16, 16..20] {
        let runs = seeds.map(|run| {
            let seed = fastrand::u64(..) << 8 | run;
            println!("seed {seed}");
            tokio::spawn(attack(Arc::clone(&server), seed))
        });
        for run in join_all(runs.collect::<Vec<_>>()).await {
            run.unwrap();
        }
    }
}

/// The default limit and window, with bursts at the edges of the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a minute"]
async fn long_default_window_admits_240_in_60_seconds() {
    let server = RedisServer::start(&RECORDED);
    let window = Duration::from_mins(1);
    let replicas = replicas(&server, 3, 240, window, "rl3:").await;
    let (history, client) = (History::default(), address(7));
    let burst = async |size: usize| {
        let checks = (0..size).map(|number| history.check(&replicas[number % 3], client));
        let decisions = join_all(checks.collect::<Vec<_>>()).await;
        decisions.iter().filter(|decision| decision.is_ok()).count()
    };

    assert_eq!(burst(150).await, 150);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(burst(200).await, 90);
    let refused = history.check(&replicas[0], client).await.unwrap_err();
    assert!((29..=30).contains(&refused.retry_after_seconds()), "{refused:?}");
    sleep(Duration::from_secs(refused.retry_after_seconds())).await;
    assert_eq!(burst(300).await, 150);

    let logged = admissions(server.directory()).remove(&key(7)).unwrap();
    history.verify(client, &logged, 240, window);
}

#[tokio::test]
async fn groups_and_addresses_have_separate_keys_that_expire() {
    let server = RedisServer::start(&[]);
    let window = Duration::from_millis(200);
    let limiter = replicas(&server, 1, 1, window, "rl3:").await.remove(0);
    for &group in Group::ALL {
        for client in 0..10 {
            assert!(limiter.check(group, address(client)).await.is_ok());
        }
    }
    let mut connection = server.connection().await;
    sleep(window + Duration::from_millis(2)).await;
    for &group in Group::ALL {
        assert!(limiter.check(group, address(99)).await.is_ok());
    }
    // `KEYS` removes expired keys, which Redis otherwise does in the background.
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), Group::ALL.len(), "{keys:?}");
}
