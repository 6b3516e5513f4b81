//! A Redis Cluster of three nodes.

use std::time::Duration;

use chart_index_ratelimit::Group;
use chart_index_redis::testing::{RedisCluster, RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConfig};
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::history::{History, admissions};
use crate::support::{Replica, address, config, key, replica, subnet};

const LIMIT: u32 = 10;
const WINDOW: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_has_an_exact_window_on_one_node() {
    let cluster = RedisCluster::start();
    let config = config(LIMIT, WINDOW, "rl3:");
    let replicas = join_all((0..2).map(|_| replica(&config, cluster.patient_config()))).await;
    let (history, until) = (History::default(), Instant::now() + 3 * WINDOW);
    let (replicas, history) = (&replicas, &history);
    let clients = (0..12).map(|client| async move {
        while Instant::now() < until {
            let burst =
                replicas.iter().cycle().take(8).map(|replica| history.check(replica, address(client)));
            join_all(burst.collect::<Vec<_>>()).await;
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..200))).await;
        }
    });
    join_all(clients.collect::<Vec<_>>()).await;

    let logs: Vec<_> = cluster.nodes.iter().map(|node| admissions(node.directory())).collect();
    assert!(logs.iter().all(|log| !log.is_empty()), "every node has some of the addresses");
    for client in 0..12 {
        let key = key(client);
        let logged: Vec<_> = logs.iter().filter_map(|log| log.get(&key)).collect();
        assert_eq!(logged.len(), 1, "one node has {key}");
        history.verify(address(client), logged[0], LIMIT as usize, WINDOW);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_scripts_are_sent_again_to_each_node() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl3:"), cluster.patient_config()).await;
    for node in &cluster.nodes {
        cmd("SCRIPT").arg("FLUSH").exec_async(&mut node.connection().await).await.unwrap();
    }
    for client in 0..20 {
        // An IPv6 address counts in its own window and in that of its network, which are on one node.
        for client in [address(client), subnet(u16::try_from(client).unwrap(), 1)] {
            assert!(limiter.check(Group::Lookup, client).await.is_ok());
        }
    }
    assert_eq!(limiter.counts().by_local_window, 0);
}

#[tokio::test]
async fn concurrent_checks_make_one_call_for_each_bucket() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(2, Duration::from_mins(1), "rl2:"), cluster.patient_config()).await;
    let calls = || cluster.nodes.iter().map(|node| node.calls("evalsha")).collect::<Vec<_>>();
    let check_all =
        async || join_all((0..200).map(|client| limiter.check(Group::Lookup, address(client)))).await;
    assert!(check_all().await.iter().all(Result::is_ok));
    let before = calls();
    assert!(check_all().await.iter().all(Result::is_ok));
    let calls: Vec<_> = calls().iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(calls, [8; 3], "24 buckets");
    assert_eq!(limiter.counts().by_local_window, 0);
}

/// The failed node.
const FAILED: usize = 1;
/// Long enough that a busy machine is not a failed node, and so long that no request may wait for it often.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Two replicas, and a cluster in which one node fails.
struct Failing {
    cluster: RedisCluster,
    replicas: Vec<Replica>,
}

impl Failing {
    async fn start() -> Self {
        let cluster = RedisCluster::start();
        let redis = RedisConfig { request_timeout: REQUEST_TIMEOUT, ..cluster.config() };
        let config = config(LIMIT, Duration::from_mins(1), "rl3:");
        let replicas = join_all((0..2).map(|_| replica(&config, redis.clone()))).await;
        Self { cluster, replicas }
    }

    /// The node with the key of a client: each has a third of the slots.
    fn node_of(&self, client: u32) -> usize {
        let slot = self.cluster.nodes[0].cli(&["CLUSTER", "KEYSLOT", &key(client)]);
        slot.parse::<usize>().unwrap() * 3 / 16_384
    }

    /// The number of requests that both replicas admit, more than twice the limit of which they get.
    async fn admitted(&self, client: u32) -> usize {
        let mut admitted = 0;
        for replica in &self.replicas {
            for _ in 0..LIMIT + 5 {
                admitted += usize::from(replica.check(Group::Lookup, address(client)).await.is_ok());
            }
        }
        admitted
    }

    /// Each replica decides on the clients of the failed node by itself and at once; the others share a limit.
    async fn only_its_keys_are_decided_locally(&self) {
        // The checks with which the replicas notice.
        let checks = self
            .replicas
            .iter()
            .flat_map(|replica| (0..60).map(|client| replica.check(Group::Rox, address(client))));
        join_all(checks.collect::<Vec<_>>()).await;
        let nodes: Vec<_> = (0..12).map(|client| self.node_of(client)).collect();
        assert!((0..3).all(|node| nodes.contains(&node)), "{nodes:?}");
        let started = Instant::now();
        for (client, node) in (0..).zip(nodes) {
            let limits = if node == FAILED { 2 } else { 1 };
            assert_eq!(
                self.admitted(client).await,
                limits * LIMIT as usize,
                "client {client} on node {node}"
            );
        }
        assert!(started.elapsed() < 2 * REQUEST_TIMEOUT, "{:?}", started.elapsed());
    }

    /// All clients share a limit again.
    async fn recovers(&self) {
        for replica in &self.replicas {
            wait_for_state(&replica.connection, ConnectionState::Connected).await;
        }
        for client in 100..112 {
            assert_eq!(self.admitted(client).await, LIMIT as usize, "client {client}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_keys_of_a_frozen_node_are_decided_locally() {
    let test = Failing::start().await;
    test.cluster.nodes[FAILED].freeze();
    test.only_its_keys_are_decided_locally().await;
    test.cluster.nodes[FAILED].thaw();
    test.recovers().await;
}

#[tokio::test]
async fn frozen_node_does_not_delay_the_checks_of_the_others() {
    let test = Failing::start().await;
    let nodes: Vec<_> = (0..12).map(|client| test.node_of(client)).collect();
    assert!((0..3).all(|node| nodes.contains(&node)), "{nodes:?}");
    test.cluster.nodes[FAILED].freeze();
    let started = Instant::now();
    // At the same time, so that they are sent together.
    let checks = (0..12).map(|client| {
        let check = test.replicas[0].check(Group::Lookup, address(client));
        async move { check.await.map(|_| started.elapsed()) }
    });
    for (waited, node) in join_all(checks.collect::<Vec<_>>()).await.into_iter().zip(nodes) {
        let waited = waited.unwrap();
        assert_eq!(waited < REQUEST_TIMEOUT, node != FAILED, "{waited:?} on node {node}");
    }
    test.cluster.nodes[FAILED].thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_keys_of_a_killed_node_are_decided_locally() {
    let mut test = Failing::start().await;
    test.cluster.nodes[FAILED].kill();
    test.only_its_keys_are_decided_locally().await;
    test.cluster.nodes[FAILED].restart();
    test.recovers().await;
}

/// A node in a minority replies but accepts no commands. One that lacks a slot is in the same state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_keys_of_an_isolated_node_are_decided_locally() {
    let test = Failing::start().await;
    let node = &test.cluster.nodes[FAILED];
    node.cli(&["CONFIG", "SET", "cluster-require-full-coverage", "yes"]);
    node.cli(&["CLUSTER", "DELSLOTS", "8000"]);
    eventually_fails(node).await;
    assert_eq!(node.cli(&["PING"]), "PONG");
    test.only_its_keys_are_decided_locally().await;
    node.cli(&["CLUSTER", "ADDSLOTS", "8000"]);
    test.recovers().await;
}

async fn eventually_fails(node: &RedisServer) {
    while !node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:fail") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slot_that_has_moved_is_found() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl3:"), cluster.patient_config()).await;
    let slot = cluster.nodes[0].cli(&["CLUSTER", "KEYSLOT", &key(1)]);
    let to = &cluster.nodes[(slot.parse::<usize>().unwrap() * 3 / 16_384 + 1) % 3];
    let id = to.cli(&["CLUSTER", "MYID"]);
    to.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    for node in &cluster.nodes {
        node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }
    let started = Instant::now();
    while limiter.counts().by_redis == 0 {
        assert!(started.elapsed() < Duration::from_secs(20));
        let _ = limiter.check(Group::Lookup, address(1)).await;
    }
}
