//! A Redis Cluster of three nodes.

use std::time::Duration;

use chart_index_cache::{Admission, CacheConfig, Invalidator};
use chart_index_ratelimit::Group;
use chart_index_redis::Replication;
use chart_index_redis::testing::{RedisCluster, RedisServer};

use crate::support::{Replica, Store, TAKES_EFFECT_WITHIN, address, eventually, key, version};

const KEYS: u64 = 30;
const CHANNEL: &str = "ci:1:invalidate";

async fn replica(cluster: &RedisCluster, listens_at: &RedisServer) -> Replica {
    Replica::with(cluster.patient_config(), listens_at, CacheConfig::default()).await
}

async fn records(cluster: &RedisCluster) -> Vec<u64> {
    let mut records = Vec::new();
    for node in &cluster.nodes {
        let mut connection = node.connection().await;
        records.push(redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap());
    }
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_spreads_records_and_invalidates_all_replicas() {
    let cluster = RedisCluster::start();
    let (here, there) =
        (replica(&cluster, &cluster.nodes[0]).await, replica(&cluster, &cluster.nodes[1]).await);
    let store = Store::default();
    for number in 0..KEYS {
        here.read(key(number), &store).await;
    }
    eventually(async || records(&cluster).await.iter().sum::<u64>() == KEYS).await;
    assert!(records(&cluster).await.iter().all(|records| *records > 0), "every node holds some of them");
    for number in 0..KEYS {
        let store = store.clone();
        let check = there.limiter.prepare(Group::Lookup, address(1)).unwrap();
        let admission =
            there.cache.get_or_fill_rate_limited(&there.limiter, check, key(number), || store.read()).await;
        let Admission::Admitted(response) = admission else { panic!("below the limit") };
        assert_eq!(response.unwrap(), version(0));
    }
    assert_eq!(store.reads(), KEYS, "the other replica found them in the cluster");

    store.update();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let invalidator = Invalidator::new(&cluster.config(), CacheConfig::KEY_PREFIX).unwrap();
    invalidator.invalidate(&keys, Duration::ZERO).await.unwrap();
    for replica in [&here, &there] {
        for key in &keys {
            let took = eventually(async || replica.read(*key, &store).await == version(1)).await;
            assert!(took < TAKES_EFFECT_WITHIN, "{took:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolated_cluster_node_does_not_count_as_listening() {
    let cluster = RedisCluster::start();
    let replica = Replica::starting(&cluster.config(), &cluster.nodes[1], CacheConfig::default());
    eventually(async || replica.cache.is_listening()).await;
    let subscribed = |node: &&RedisServer| node.cli(&["PUBSUB", "NUMSUB", CHANNEL]).ends_with("\n1");
    let [node] = cluster.nodes.iter().filter(subscribed).collect::<Vec<_>>()[..] else {
        panic!("one node has the subscription")
    };
    let slot = node.cli(&["CLUSTER", "KEYSLOT", CHANNEL]);

    // The state of a node in a minority: it replies but accepts no commands. A node that misses slots is in it
    // as well.
    node.cli(&["CLUSTER", "DELSLOTS", &slot]);
    eventually(async || node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:fail")).await;
    assert_eq!(node.cli(&["PING"]), "PONG");
    eventually(async || !replica.cache.is_listening()).await;
    node.cli(&["CLUSTER", "ADDSLOTS", &slot]);
    eventually(async || replica.cache.is_listening()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_primary_of_a_cluster_confirms_an_invalidation() {
    let cluster = RedisCluster::start();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let invalidator = Invalidator::new(&cluster.config(), CacheConfig::KEY_PREFIX).unwrap();
    let confirmed = invalidator.invalidate_and_confirm(&keys, Duration::from_secs(10)).await.unwrap();
    assert_eq!(confirmed, Some(Replication::default()), "none has a replica");
    for node in &cluster.nodes {
        assert!(node.calls("wait") > 0, "every primary was asked");
    }
}
