//! Replicas share a Redis; Redis itself keeps the record that they are judged by.
//!
//! Nothing here waits for luck: that time passes is the subject.

use chart_index_redis::testing::RedisServer;
use std::sync::Arc;
use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Decision, Group, Limiter};
use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use crate::support::history::{History, admissions};
use crate::support::{address, config, replica};

const RECORDED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "no"];

async fn replicas(
    server: &RedisServer,
    count: usize,
    limit: u32,
    window: Duration,
    prefix: &str,
) -> Vec<Limiter> {
    let config = config(limit, window, prefix);
    join_all((0..count).map(|_| replica(&config, server.patient_config()))).await
}

/// One client of one address: bursts at any replica, between them pauses of which many end at an edge of the window.
async fn adversary(
    replicas: &[Limiter],
    who: ClientAddress,
    history: &History,
    mut random: Rng,
    until: Instant,
) {
    while Instant::now() < until {
        let burst = (0..random.usize(1..25)).map(|_| history.ask(random.choice(replicas).unwrap(), who));
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

/// A client that does as it is told: it is never refused twice.
async fn obedient(
    replicas: &[Limiter],
    who: ClientAddress,
    history: &History,
    mut random: Rng,
    until: Instant,
) {
    let mut just_waited = false;
    while Instant::now() < until {
        let decision = history.ask(random.choice(replicas).unwrap(), who).await;
        assert!(decision.is_admitted() || !just_waited, "refused after waiting as told");
        just_waited = !decision.is_admitted();
        if let Decision::Refused { retry_after, .. } = decision {
            sleep(retry_after).await;
        }
    }
}

/// The wait of a refusal.
fn wait_ms(decision: &Decision) -> Option<u64> {
    match decision {
        Decision::Admitted { .. } => None,
        Decision::Refused { retry_after, .. } => u64::try_from(retry_after.as_millis()).ok(),
    }
}

async fn attack(server: Arc<RedisServer>, seed: u64) {
    const LIMIT: u32 = 20;
    const WINDOW: Duration = Duration::from_millis(600);
    let prefix = format!("seed{seed}:");
    let replicas = replicas(&server, 3, LIMIT, WINDOW, &prefix).await;
    let (history, mut random) = (History::default(), Rng::with_seed(seed));
    let until = Instant::now() + 4 * WINDOW;
    let attackers = (0..4).map(|who| adversary(&replicas, address(who % 2), &history, random.fork(), until));
    let attackers = attackers.collect::<Vec<_>>();
    let good = obedient(&replicas, address(2), &history, random.fork(), until);
    tokio::join!(join_all(attackers), good);

    let mut logged = admissions(server.directory());
    for who in 0..3 {
        let logged = logged.remove(&format!("{prefix}l:{who:08x}")).unwrap_or_default();
        history.judge(address(who), &logged, LIMIT as usize, WINDOW);
        assert!(logged.len() > LIMIT as usize, "the schedule reaches into a second window");
        assert!(history.of(address(who)).len() > logged.len(), "the schedule reaches the limit");
    }
    assert!(replicas.iter().all(|replica| replica.counts().by_stand_in == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_schedule_gets_more_than_the_limit_or_is_refused_below_it() {
    let server = Arc::new(RedisServer::start(&RECORDED));
    // Four at a time: the machine's own pauses would otherwise be most of what is tested.
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

/// The limit and the window of the contract, and bursts at the edges of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_window_admits_240_in_60_seconds() {
    let server = RedisServer::start(&RECORDED);
    let window = Duration::from_mins(1);
    let replicas = replicas(&server, 3, 240, window, "rl2:").await;
    let (history, who) = (History::default(), address(7));
    let burst = async |size: usize| {
        let asked = (0..size).map(|number| history.ask(&replicas[number % 3], who));
        let decisions = join_all(asked.collect::<Vec<_>>()).await;
        decisions.iter().filter(|decision| decision.is_admitted()).count()
    };

    assert_eq!(burst(150).await, 150);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(burst(200).await, 90);
    let refused = history.ask(&replicas[0], who).await;
    assert!((29..=30).contains(&refused.retry_after_seconds().unwrap()), "{refused:?}");
    sleep(Duration::from_secs(refused.retry_after_seconds().unwrap())).await;
    assert_eq!(burst(300).await, 150);

    let logged = admissions(server.directory()).remove("rl2:l:00000007").unwrap();
    history.judge(who, &logged, 240, window);
}

#[tokio::test]
async fn an_admission_says_how_many_remain_and_when_the_next_one_leaves() {
    let server = RedisServer::start(&[]);
    let window = Duration::from_millis(500);
    let limiter = replicas(&server, 1, 3, window, "rl2:").await.remove(0);
    let history = History::default();
    for remaining in [2, 1, 0] {
        let decision = history.ask(&limiter, address(1)).await;
        assert_eq!((decision.is_admitted(), decision.remaining()), (true, remaining));
        assert_eq!((decision.limit().get(), decision.reset_seconds()), (3, 1));
    }
    sleep(window).await;
    assert_eq!(history.ask(&limiter, address(1)).await.remaining(), 2, "those that left are not counted");
}

#[tokio::test]
async fn groups_and_addresses_do_not_share_a_limit_and_memory_is_given_back() {
    let server = RedisServer::start(&[]);
    let window = Duration::from_millis(200);
    let limiter = replicas(&server, 1, 1, window, "rl2:").await.remove(0);
    for group in Group::ALL {
        for who in 0..10 {
            assert!(limiter.check(group, address(who)).await.is_admitted());
        }
    }
    let mut connection = server.connection().await;
    sleep(window + Duration::from_millis(2)).await;
    for group in Group::ALL {
        assert!(limiter.check(group, address(99)).await.is_admitted());
    }
    // Asking for a key is what makes Redis notice that it has expired; left alone it does so by itself.
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), Group::ALL.len(), "{keys:?}");
}
