//! Large numbers of unknown hashes.

use chart_index_cache::CachedResponse;
use chart_index_domain::ReadError;
use chart_index_redis::testing::RedisServer;
use futures_util::StreamExt;

use crate::support::{Replica, Store, key, version};

const KNOWN: u64 = 2_000;
const UNKNOWN: u64 = 200_000;

/// Reads all of these hashes, 256 at a time.
async fn read_all(replica: &Replica, numbers: std::ops::Range<u64>, store: &Store) {
    futures_util::stream::iter(numbers)
        .for_each_concurrent(256, |number| async move {
            let expected = if number < KNOWN { version(0) } else { CachedResponse::NotFound };
            let (store, response) = (store.clone(), expected.clone());
            let fill = || async move {
                let _counted = store.count();
                Ok::<_, ReadError>(response)
            };
            assert_eq!(replica.cache.get(key(number), fill).await.unwrap(), expected);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_hashes_are_cached_and_evict_no_known_one() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (known, unknown) = (Store::default(), Store::default());
    read_all(&replica, 0..KNOWN, &known).await;
    read_all(&replica, KNOWN..KNOWN + UNKNOWN, &unknown).await;
    // Memory alone has to hold them.
    redis::cmd("FLUSHALL").arg("ASYNC").exec_async(&mut server.connection().await).await.unwrap();
    read_all(&replica, KNOWN..KNOWN + UNKNOWN, &unknown).await;
    read_all(&replica, 0..KNOWN, &known).await;
    assert_eq!(known.reads(), KNOWN, "every known one is still cached");
    let again = unknown.reads() - UNKNOWN;
    assert!(again < UNKNOWN / 100, "{again} were read again");
    let counts = replica.cache.stats();
    assert_eq!(counts.found_entries as u64, KNOWN, "every known one is cached");
    assert!(counts.bytes <= 64 << 20);
}
