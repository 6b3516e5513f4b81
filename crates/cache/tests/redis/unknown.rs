//! Unknown hashes in great numbers.

use chart_index_cache::{CacheConfig, CachedResponse};
use chart_index_redis::testing::RedisServer;
use futures_util::StreamExt;

use crate::support::{Down, Replica, Store, key, version};

const KNOWN: u64 = 2_000;
const UNKNOWN: u64 = 200_000;

/// Asks for all of these hashes, many at a time.
async fn ask(replica: &Replica, numbers: std::ops::Range<u64>, store: &Store) {
    futures_util::stream::iter(numbers)
        .for_each_concurrent(256, |number| async move {
            let expected = if number < KNOWN { version(0) } else { CachedResponse::NotFound };
            let (store, answer) = (store.clone(), expected.clone());
            let fill = || async move {
                let _counted = store.count();
                Ok::<_, Down>(answer)
            };
            assert_eq!(replica.cache.get_or_fill(key(number), fill).await.unwrap(), expected);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_hashes_are_remembered_and_push_out_no_known_one() {
    let server = RedisServer::start(&[]);
    // Memory alone has to hold them: Redis is emptied between the passes, and not asked whether they are still there
    // while this takes its time.
    let mut config = CacheConfig::default();
    config.lifetimes.lookup.recheck_after = config.lifetimes.lookup.stale_after;
    let replica = Replica::with(server.patient_config(), &server, config).await;
    let (known, unknown) = (Store::default(), Store::default());
    ask(&replica, 0..KNOWN, &known).await;
    ask(&replica, KNOWN..KNOWN + UNKNOWN, &unknown).await;
    // In the background: while Redis cannot answer, changes are not heard, and what is kept is read again.
    redis::cmd("FLUSHALL").arg("ASYNC").exec_async(&mut server.connection().await).await.unwrap();
    ask(&replica, KNOWN..KNOWN + UNKNOWN, &unknown).await;
    ask(&replica, 0..KNOWN, &known).await;
    assert_eq!(known.reads(), KNOWN, "every known one was still there");
    let again = unknown.reads() - UNKNOWN;
    assert!(again < UNKNOWN / 100, "{again} reached the store again");
    let counts = replica.cache.stats();
    assert_eq!(counts.found_entries as u64, KNOWN, "every known one is held");
    assert!(counts.bytes <= 64 << 20);
}
