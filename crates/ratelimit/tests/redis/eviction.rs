//! Rate limits in a Redis that is full of cached responses, with the eviction policy of `compose/redis.conf`.
//!
//! With most other policies the clients here are admitted twice as often
//! (`benchmarks/results/2026-11-22-redis-eviction.md`).

use std::time::Duration;

use chart_index_redis::testing::RedisServer;
use chart_index_tests::workspace_root;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::support::eviction::{Cache, Client, most_in, server};
use crate::support::{address, config, replica};

const LIMIT: u32 = 240;
const WINDOW: Duration = Duration::from_secs(8);
/// The requests of a burst, and the time between two bursts in which a client is idle.
const BURST: u32 = 200;
const IDLE: Duration = Duration::from_secs(3);
/// Reads of the cache, per second and for each request of the clients in a burst.
const READS_PER_SECOND: usize = 10_000;
const READS_PER_REQUEST: usize = 20;
/// A window that has just begun counts like any response that was read once, so it may lose its first
/// admissions.
const TOLERATED: usize = LIMIT as usize / 20;
/// Admissions are timed where they are sent, so two that are a window apart in Redis may be a second closer.
const SHORTEST_WINDOW: Duration = Duration::from_secs(7);

fn configured_policy() -> String {
    let config = std::fs::read_to_string(workspace_root().join("compose/redis.conf")).unwrap();
    config.lines().find_map(|line| line.strip_prefix("maxmemory-policy ")).unwrap().to_owned()
}

fn evictions(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "stats"]);
    stats.lines().find_map(|line| line.strip_prefix("evicted_keys:")?.trim().parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eviction_admits_no_client_more_often() {
    let server = server(&configured_policy());
    let config = config(LIMIT, WINDOW, "rl3:");
    let replicas = join_all((0..2).map(|_| replica(&config, server.patient_config()))).await;
    let mut cache = Cache::connect(&server).await;
    cache.read_until(READS_PER_SECOND, Instant::now() + Duration::from_secs(4)).await;
    let (until, before) = (Instant::now() + WINDOW + WINDOW / 2, evictions(&server));
    let mut clients: Vec<Client> = (0..10).map(|client| Client::new(address(client))).collect();
    while Instant::now() < until {
        // In turn, however slow the machine is: what a new window counts between two evictions may be lost.
        for _ in 0..BURST {
            join_all(clients.iter_mut().map(|client| client.send(&replicas))).await;
            cache.read(READS_PER_REQUEST).await;
        }
        cache.read_until(READS_PER_SECOND, Instant::now() + IDLE).await;
    }
    // What was in Redis when the clients began has been replaced more than once: it has room for 7,000
    // responses.
    assert!(evictions(&server) - before > 10_000);
    for replica in &replicas {
        assert_eq!(replica.counts().by_local_window, 0, "Redis decides");
    }
    for Client { admitted, .. } in clients {
        let most = most_in(SHORTEST_WINDOW, &admitted);
        assert!(most <= LIMIT as usize + TOLERATED, "{most} of {}", admitted.len());
        assert!(admitted.len() > LIMIT as usize, "the clients reach a second window");
    }
}
