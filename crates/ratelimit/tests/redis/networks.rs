//! Limits of IPv6 /48 networks: 16 times the limit of a /64.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chart_index_ratelimit::{Group, Limiter, Refusal, Scope};
use chart_index_redis::testing::RedisServer;
use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use crate::support::history::{History, admissions};
use crate::support::{Replica, config, replica, subnet, tagged_key};

const LIMIT: u32 = 2;
const NETWORK_LIMIT: usize = 32;
const MINUTE: Duration = Duration::from_mins(1);

/// Sends as many requests as each of these addresses may send. Those of 16 are as many as their network may.
async fn fill(limiter: &Limiter, network: u16, addresses: Range<u16>) {
    for number in addresses {
        for _ in 0..LIMIT {
            assert!(limiter.check(Group::Lookup, subnet(network, number)).await.is_ok());
        }
    }
}

async fn adversary(replicas: &[Replica], history: &History, mut random: Rng, until: Instant) {
    while Instant::now() < until {
        let burst = (0..random.usize(1..25)).map(|_| {
            let address = subnet(random.u16(0..2), random.u16(0..24));
            history.check(random.choice(replicas).unwrap(), address)
        });
        let decisions = join_all(burst.collect::<Vec<_>>()).await;
        let wait = decisions.iter().find_map(|decision| match decision {
            Err(Refusal { scope: Scope::Network, retry_after, .. }) => Some(*retry_after),
            _ => None,
        });
        match (random.u8(0..3), wait) {
            (1, Some(wait)) => sleep(wait.saturating_sub(Duration::from_millis(random.u64(0..3)))).await,
            (2, Some(wait)) => sleep(wait + Duration::from_millis(random.u64(0..2))).await,
            _ => sleep(Duration::from_millis(random.u64(0..100))).await,
        }
    }
}

/// A refusal by the network does not count for the address, an admission counts in both windows, and neither
/// admits more than its limit or refuses below it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_and_networks_have_exact_windows() {
    const WINDOW: Duration = Duration::from_millis(600);
    let server = Arc::new(RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]));
    let config = config(LIMIT, WINDOW, "rl3:");
    let replicas = join_all((0..3).map(|_| replica(&config, server.patient_config()))).await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (history, mut random) = (History::default(), Rng::with_seed(seed));
    let until = Instant::now() + 4 * WINDOW;
    let adversaries = (0..4).map(|_| adversary(&replicas, &history, random.fork(), until));
    join_all(adversaries.collect::<Vec<_>>()).await;

    let logged = admissions(server.directory());
    for network in 0..2 {
        let (bits, digits) = (0x2001_0db8_0000 + u64::from(network), format!("20010db8{network:04x}"));
        let of_network = &logged[&tagged_key(bits, &digits)];
        assert!(of_network.len() > NETWORK_LIMIT, "the schedule reaches into a second window");
        let mut of_addresses = 0;
        for number in 0..24 {
            let key = tagged_key(bits, &format!("{digits}{number:04x}"));
            let own = logged.get(&key).map_or(&[][..], Vec::as_slice);
            let windows = [(own, LIMIT as usize), (of_network.as_slice(), NETWORK_LIMIT)];
            history.verify_all(subnet(network, number), &windows, WINDOW);
            of_addresses += own.len();
        }
        assert_eq!(of_addresses, of_network.len(), "an admission counts for the address and the network");
    }
    assert!(replicas.iter().all(|replica| replica.counts().by_local_window == 0));
}

#[tokio::test]
async fn retry_after_of_a_network_is_accurate() {
    let server = RedisServer::start(&[]);
    let window = Duration::from_millis(300);
    let limiter = replica(&config(LIMIT, window, "rl3:"), server.patient_config()).await;
    fill(&limiter, 1, 0..16).await;
    let refused = limiter.check(Group::Lookup, subnet(1, 100)).await;
    let Refusal { scope, limit, retry_after } = refused.expect_err("the network is at its limit");
    assert_eq!((scope, limit.get() as usize), (Scope::Network, NETWORK_LIMIT));
    assert!(retry_after <= window, "{retry_after:?}");
    assert!(limiter.check(Group::List, subnet(1, 100)).await.is_ok(), "another group");
    assert!(limiter.check(Group::Lookup, subnet(2, 100)).await.is_ok(), "another network");
    sleep(retry_after).await;
    let after = limiter.check(Group::Lookup, subnet(1, 100)).await;
    assert!(after.is_ok(), "{after:?}");
}

#[tokio::test]
async fn address_at_both_limits_gets_the_longer_wait() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(LIMIT, MINUTE, "rl3:"), server.patient_config()).await;
    let started = Instant::now();
    fill(&limiter, 1, 0..15).await;
    sleep(Duration::from_millis(50)).await;
    fill(&limiter, 1, 15..16).await;
    let decision = limiter.check(Group::Lookup, subnet(1, 15)).await;
    let Err(Refusal { scope: Scope::Address, retry_after, .. }) = decision else {
        panic!("{decision:?}");
    };
    // The oldest admission of the address came after the pause, that of the network before.
    assert!(Instant::now() + retry_after > started + MINUTE + Duration::from_millis(50), "{retry_after:?}");
}

/// A budget is what the address or its network has left, whichever is less, without what has left the window.
#[tokio::test]
async fn budgets_are_what_is_left() {
    let server = RedisServer::start(&[]);
    let limiter = replica(&config(LIMIT, MINUTE, "rl3:"), server.patient_config()).await;
    let left = async |number| {
        let decision = limiter.check(Group::Feed, subnet(1, number)).await;
        decision.ok().map(|budget| budget.unwrap().remaining)
    };
    for number in 0..15 {
        assert_eq!((left(number).await, left(number).await), (Some(1), Some(0)), "{number}");
    }
    assert_eq!((left(15).await, left(16).await, left(17).await), (Some(1), Some(0), None));
    assert_eq!(limiter.check(Group::Lookup, subnet(1, 0)).await, Ok(None));

    let window = Duration::from_millis(300);
    let limiter = replica(&config(LIMIT, window, "short:"), server.patient_config()).await;
    for _ in 0..3 {
        let budget = limiter.check(Group::Bulk, subnet(2, 0)).await.unwrap().unwrap();
        assert_eq!((budget.remaining, budget.limit.get()), (1, LIMIT));
        assert!(budget.renewed_after <= window, "{:?}", budget.renewed_after);
        sleep(budget.renewed_after + Duration::from_millis(2)).await;
    }
    assert_eq!(limiter.counts().by_local_window, 0);
}
