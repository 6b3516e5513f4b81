//! A Redis Cluster of three nodes.

use chart_index_cache::CacheConfig;
use chart_index_redis::testing::RedisCluster;

use crate::support::{Replica, Store, eventually, key, version};

const KEYS: u64 = 30;

async fn records(cluster: &RedisCluster) -> Vec<u64> {
    let mut records = Vec::new();
    for node in &cluster.nodes {
        let mut connection = node.connection().await;
        records.push(redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap());
    }
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_the_records_of_a_cluster() {
    let cluster = RedisCluster::start();
    let replica = || Replica::with(cluster.patient_config(), CacheConfig::default());
    let (here, there) = (replica().await, replica().await);
    let store = Store::default();
    for number in 0..KEYS {
        here.read(key(number), &store).await;
    }
    eventually(async || records(&cluster).await.iter().sum::<u64>() == KEYS).await;
    assert!(records(&cluster).await.iter().all(|records| *records > 0), "every node holds some of them");
    for number in 0..KEYS {
        assert_eq!(there.read_limited(1, key(number), &store).await, Ok(version(0)));
    }
    assert_eq!(store.reads(), KEYS, "the other replica found them in the cluster");
}
