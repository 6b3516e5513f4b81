//! A Redis Cluster of three nodes.

use std::time::Duration;

use chart_index_cache::CacheConfig;
use chart_index_redis::RedisConfig;
use chart_index_redis::testing::RedisCluster;
use futures_util::future::join_all;

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
    let (here, there, batch) = (replica().await, replica().await, replica().await);
    let store = Store::default();
    for number in 0..KEYS {
        here.read(key(number), &store).await;
    }
    eventually(async || records(&cluster).await.iter().sum::<u64>() == KEYS).await;
    assert!(records(&cluster).await.iter().all(|records| *records > 0), "every node holds some of them");
    for number in 0..KEYS {
        assert_eq!(there.read(key(number), &store).await, version(0));
    }
    assert_eq!(store.reads(), KEYS, "the other replica found them in the cluster");
    let keys: Vec<_> = (0..2 * KEYS).map(key).collect();
    let fill = async |positions: Vec<usize>| Ok(vec![version(1); positions.len()]);
    let responses = batch.cache.get_many(&keys, fill).await.unwrap();
    let [found, filled] = [0, 1].map(|number| vec![version(number); keys.len() / 2]);
    assert_eq!(responses, [found, filled].concat());
    eventually(async || records(&cluster).await.iter().sum::<u64>() == 2 * KEYS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_records_of_a_frozen_node_are_read_from_the_store() {
    let cluster = RedisCluster::start();
    let config = RedisConfig { request_timeout: Duration::from_secs(2), ..cluster.config() };
    let replica = || Replica::with(config.clone(), CacheConfig::default());
    let (writer, single, batch) = (replica().await, replica().await, replica().await);
    let store = Store::default();
    for number in 0..KEYS {
        writer.read(key(number), &store).await;
    }
    eventually(async || records(&cluster).await.iter().sum::<u64>() == KEYS).await;
    let frozen = records(&cluster).await[1];
    cluster.nodes[1].freeze();

    let store = Store::default();
    join_all((0..KEYS).map(|number| single.read(key(number), &store))).await;
    assert_eq!(store.reads(), frozen, "single reads");

    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let mut missing = 0;
    let fill = async |positions: Vec<usize>| {
        missing = positions.len() as u64;
        Ok(positions.iter().map(|_| version(0)).collect())
    };
    let responses = batch.cache.get_many(&keys, fill).await.unwrap();
    assert_eq!((responses.len() as u64, missing), (KEYS, frozen), "a batch");
}
