//! A Redis Cluster of three nodes.

use std::time::Duration;

use chart_index_ratelimit::Group;
use chart_index_redis::ConnectionState;
use chart_index_redis::testing::{RedisCluster, RedisServer, wait_for_state};
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::history::{History, admissions};
use crate::support::{MAX_WAIT, address, config, key, replica};

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
        let check = limiter.prepare(Group::Lookup, address(client)).unwrap();
        let (redis, read) = (check.connection().clone(), cmd("GET").arg("elsewhere").clone());
        let (decision, body) = tokio::join!(limiter.decide(check), redis.run(&read, redis.deadline()));
        assert_eq!(body.unwrap(), redis::Value::Nil);
        assert!(decision.is_ok());
    }
    assert_eq!(limiter.counts().by_local_window, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_node_does_not_slow_requests_and_recovers() {
    let mut cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl3:"), cluster.config()).await;
    cluster.nodes[1].kill();
    let mut client = 0..;
    let mut next_takes = async || {
        let started = Instant::now();
        assert!(limiter.check(Group::Lookup, address(client.next().unwrap())).await.is_ok());
        started.elapsed()
    };
    while limiter.connection().state() != ConnectionState::Unavailable {
        assert!(next_takes().await < MAX_WAIT);
    }
    // It stays unavailable for all nodes until every node replies; requests do not wait for attempts to
    // reconnect.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        assert!(next_takes().await < MAX_WAIT);
        assert_ne!(limiter.connection().state(), ConnectionState::Connected);
    }
    cluster.nodes[1].restart();
    wait_for_state(limiter.connection(), ConnectionState::Connected).await;
    assert!(next_takes().await < MAX_WAIT);
    assert!(limiter.counts().by_redis > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolated_cluster_node_does_not_count_as_connected() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl3:"), cluster.config()).await;
    // The state of a node in a minority: it replies but accepts no commands. A node without all slots is in it
    // as well.
    let node = &cluster.nodes[1];
    let slots = node.cli(&["CLUSTER", "SLOTS"]);
    let own = slots.lines().collect::<Vec<_>>().windows(4).find_map(|lines| {
        let [first, _last, _host, port] = lines else { return None };
        (port.trim() == node.port.to_string()).then(|| first.trim().to_owned())
    });
    let last = own.expect("the node has slots");
    node.cli(&["CLUSTER", "DELSLOTS", &last]);
    eventually_fails(node).await;
    assert_eq!(node.cli(&["PING"]), "PONG");
    wait_for_state(limiter.connection(), ConnectionState::Unavailable).await;
    node.cli(&["CLUSTER", "ADDSLOTS", &last]);
    wait_for_state(limiter.connection(), ConnectionState::Connected).await;
}

async fn eventually_fails(node: &RedisServer) {
    while !node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:fail") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
