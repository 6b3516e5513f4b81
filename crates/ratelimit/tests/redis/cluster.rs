//! A cluster of three nodes.

use chart_index_redis::testing::{RedisCluster, RedisServer, wait_for_state};
use std::time::Duration;

use chart_index_ratelimit::Group;
use chart_index_redis::ConnectionState;
use futures_util::future::join_all;
use redis::cmd;
use tokio::time::Instant;

use crate::support::history::{History, admissions};
use crate::support::{PATIENCE, address, config, replica};

const LIMIT: u32 = 10;
const WINDOW: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_has_its_exact_window_on_one_of_the_nodes() {
    let cluster = RedisCluster::start();
    let config = config(LIMIT, WINDOW, "rl2:");
    let replicas = join_all((0..2).map(|_| replica(&config, cluster.patient_config()))).await;
    let (history, until) = (History::default(), Instant::now() + 3 * WINDOW);
    let (replicas, history) = (&replicas, &history);
    let clients = (0..12).map(|who| async move {
        while Instant::now() < until {
            let burst = replicas.iter().cycle().take(8).map(|replica| history.ask(replica, address(who)));
            join_all(burst.collect::<Vec<_>>()).await;
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..200))).await;
        }
    });
    join_all(clients.collect::<Vec<_>>()).await;

    let logs: Vec<_> = cluster.nodes.iter().map(|node| admissions(node.directory())).collect();
    assert!(logs.iter().all(|log| !log.is_empty()), "every node holds some of the addresses");
    for who in 0..12 {
        let key = format!("rl2:l:{who:08x}");
        let logged: Vec<_> = logs.iter().filter_map(|log| log.get(&key)).collect();
        assert_eq!(logged.len(), 1, "one node holds {key}");
        history.judge(address(who), logged[0], LIMIT as usize, WINDOW);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_different_nodes_go_out_together_and_flushed_scripts_come_back() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl2:"), cluster.patient_config()).await;
    for node in &cluster.nodes {
        cmd("SCRIPT").arg("FLUSH").exec_async(&mut node.connection().await).await.unwrap();
    }
    for who in 0..20 {
        let check = limiter.prepare(Group::Lookup, address(who)).unwrap();
        let commands = vec![check.command().clone(), cmd("GET").arg("elsewhere").clone()];
        let answers = limiter.connection().run_all(commands, check.deadline()).await.unwrap();
        let [limit, body] = <[_; 2]>::try_from(answers).unwrap();
        assert_eq!(body.unwrap(), redis::Value::Nil);
        assert!(limiter.finish(check, limit).await.is_admitted());
    }
    assert_eq!(limiter.counts().by_stand_in, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_costs_little_and_comes_back() {
    let mut cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl2:"), cluster.config()).await;
    cluster.nodes[1].kill();
    let mut who = 0..;
    let mut next_takes = async || {
        let begun = Instant::now();
        assert!(limiter.check(Group::Lookup, address(who.next().unwrap())).await.is_admitted());
        begun.elapsed()
    };
    while limiter.connection().state() != ConnectionState::Unavailable {
        assert!(next_takes().await < PATIENCE);
    }
    // It stays away, for every node, until all of them answer: nothing waits for attempts in between.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert!(next_takes().await < PATIENCE);
        assert_ne!(limiter.connection().state(), ConnectionState::Connected);
    }
    cluster.nodes[1].restart();
    wait_for_state(limiter.connection(), ConnectionState::Connected).await;
    assert!(next_takes().await < PATIENCE);
    assert!(limiter.counts().by_redis > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_cut_off_from_its_cluster_does_not_count_as_connected() {
    let cluster = RedisCluster::start();
    let limiter = replica(&config(LIMIT, Duration::from_mins(1), "rl2:"), cluster.config()).await;
    // The state of a node in a minority: it answers and accepts no commands. A node that misses slots is in it as well.
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
