//! Large numbers of unknown hashes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chart_index_cache::CachedResponse;
use chart_index_domain::ReadError;
use chart_index_redis::testing::RedisServer;
use futures_util::StreamExt;

use crate::support::{Replica, key, version};

const KNOWN: u64 = 2_000;
const UNKNOWN: u64 = 200_000;

/// Reads all of these hashes, 256 at a time. Returns the number of those that the store was asked for.
async fn read_all(replica: &Replica, numbers: Range<u64>) -> u64 {
    let reads = Arc::new(AtomicU64::new(0));
    futures_util::stream::iter(numbers)
        .for_each_concurrent(256, |number| {
            let reads = Arc::clone(&reads);
            async move {
                let expected = if number < KNOWN { version(0) } else { CachedResponse::NotFound };
                let response = expected.clone();
                let fill = || async move {
                    reads.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, ReadError>(response)
                };
                assert_eq!(replica.cache.get(key(number), fill).await.unwrap(), expected);
            }
        })
        .await;
    reads.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_hashes_are_cached_and_evict_no_known_one() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    for numbers in [0..KNOWN, KNOWN..KNOWN + UNKNOWN] {
        read_all(&replica, numbers).await;
    }
    // Memory alone has to hold them.
    redis::cmd("FLUSHALL").arg("ASYNC").exec_async(&mut server.connection().await).await.unwrap();
    let again = read_all(&replica, KNOWN..KNOWN + UNKNOWN).await;
    assert!(again < UNKNOWN / 100, "{again} were read again");
    assert_eq!(read_all(&replica, 0..KNOWN).await, 0, "every known one is still cached");
    assert!(replica.cache.stats().bytes <= 64 << 20);
}
