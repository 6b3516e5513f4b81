//! Locks of processes, and the connections that hold them.

use std::time::{Duration, Instant};

use chart_index_store::{ProcessLocks, ProcessRole, Store};
use chart_index_tests::Proxy;

use crate::support::{Catalogue, config};

/// Longer than anything that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(10);
const INDEX: &str = "http://node:7700/indexes/chartsets_v1";

async fn locks(store: &Store) -> ProcessLocks {
    store.process_locks(INDEX).await.unwrap()
}

#[tokio::test]
async fn waiting_for_a_lock_keeps_no_statement_open() {
    let catalogue = Catalogue::create().await;
    let (first, second) = (locks(&catalogue.store).await, locks(&catalogue.store).await);
    first.acquire(ProcessRole::Write).await.unwrap();
    let waiting = second.acquire(ProcessRole::Write);
    tokio::pin!(waiting);
    // Longer than the poll interval.
    assert!(tokio::time::timeout(Duration::from_millis(500), waiting.as_mut()).await.is_err());
    let blocked = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(catalogue.database.psql(blocked), "0");
    first.release(ProcessRole::Write).await.unwrap();
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap().unwrap();
    second.release(ProcessRole::Write).await.unwrap();
    assert!(first.try_acquire(ProcessRole::Write).await.unwrap());
}

#[tokio::test]
async fn a_waiting_process_gets_a_busy_lock() {
    let catalogue = Catalogue::create().await;
    let (first, second) = (locks(&catalogue.store).await, locks(&catalogue.store).await);
    first.acquire(ProcessRole::Write).await.unwrap();
    let again_and_again = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            first.release(ProcessRole::Write).await.unwrap();
            first.acquire(ProcessRole::Write).await.unwrap();
        }
    };
    tokio::select! {
        () = again_and_again => unreachable!(),
        acquired = second.acquire(ProcessRole::Write) => acquired.unwrap(),
        () = tokio::time::sleep(TIMEOUT) => panic!("the waiting process never gets the lock"),
    }
}

#[tokio::test]
async fn a_half_open_connection_ends_the_wait() {
    let catalogue = Catalogue::create().await;
    let proxy = Proxy::start(catalogue.database.url()).await;
    let behind_proxy = Store::new(&config(proxy.url()));
    let (first, second) = (locks(&catalogue.store).await, locks(&behind_proxy).await);
    first.acquire(ProcessRole::Write).await.unwrap();
    let start = Instant::now();
    let waiting = second.acquire(ProcessRole::Write);
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting.as_mut()).await.is_err());
    proxy.silence_open_connections();
    let ended = tokio::time::timeout(TIMEOUT, waiting).await;
    assert!(ended.is_ok_and(|acquired| acquired.is_err()), "{:?}", start.elapsed());
    assert!(second.check().await.is_err(), "the other locks are lost as well");
    let start = Instant::now();
    assert!(second.try_acquire(ProcessRole::Rebuild).await.is_err());
    assert!(start.elapsed() < Duration::from_secs(1), "a half-open connection is not used again");
}

#[tokio::test]
async fn a_role_has_one_holder_until_its_connection_ends() {
    let catalogue = Catalogue::create().await;
    let (store, index) = (&catalogue.store, catalogue.database.url());
    let first = store.process_locks(index).await.unwrap();
    let second = store.process_locks(index).await.unwrap();
    assert!(first.try_acquire(ProcessRole::Sync).await.unwrap());
    assert!(!second.try_acquire(ProcessRole::Sync).await.unwrap());
    assert!(second.try_acquire(ProcessRole::Rebuild).await.unwrap(), "another role");
    let other = store.process_locks("http://node:7700/indexes/chartsets_v2").await.unwrap();
    assert!(other.try_acquire(ProcessRole::Sync).await.unwrap(), "another index");
    first.release(ProcessRole::Sync).await.unwrap();
    assert!(second.try_acquire(ProcessRole::Sync).await.unwrap());

    second.check().await.unwrap();
    let _ = catalogue.database.psql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    let forever = std::future::pending::<()>();
    assert!(tokio::time::timeout(TIMEOUT, second.while_held(forever)).await.unwrap().is_err());
    assert!(second.check().await.is_err());
    first.acquire(ProcessRole::Sync).await.unwrap();
}
