//! What is sent over a connection of the pool, and in which state it returns.

use std::time::Duration;

use chart_index_store::{Store, StoreConfig};
use chart_index_tests::{Proxy, within};

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash, id};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A catalogue with two charts.
async fn catalogue() -> Catalogue {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 1).await;
    catalogue
}

fn store_with_one_connection(url: &str) -> Store {
    Store::new(&StoreConfig { max_connections: 1, ..config(url) })
}

#[tokio::test]
async fn each_lookup_is_one_round_trip() {
    let catalogue = catalogue().await;
    let proxy = Proxy::start(catalogue.database.url()).await;
    let store = store_with_one_connection(proxy.url());
    let read_all = async || {
        store.chart(hash(1)).await.unwrap().unwrap();
        store.charts(&[hash(1), hash(3)]).await.unwrap();
        store.rox(hash(1)).await.unwrap().unwrap();
        store.rox(hash(1)).await.unwrap();
        store.chartset(id(1)).await.unwrap().unwrap();
        store.public_source(id(1)).await.unwrap();
    };
    // Opens the connection and prepares the statements.
    read_all().await;
    let before = proxy.messages();
    read_all().await;
    assert_eq!(proxy.messages() - before, 6);
}

/// The server executes a `BEGIN` that was sent before its future was dropped.
#[tokio::test]
async fn connection_of_an_abandoned_snapshot_returns_without_a_transaction() {
    let catalogue = catalogue().await;
    let proxy = Proxy::start_with_delay(catalogue.database.url(), Duration::from_millis(200)).await;
    let store = store_with_one_connection(proxy.url());
    store.chart(hash(1)).await.unwrap().unwrap();
    let before = proxy.messages();
    let abandoned = tokio::spawn({
        let store = store.clone();
        async move { store.feed_after(0, None, 10).await }
    });
    // A ping, and the `BEGIN`.
    within(TIMEOUT, async || (proxy.messages() == before + 2).then_some(())).await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    store.chart(hash(1)).await.unwrap().unwrap();
    let transactions = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(catalogue.database.psql(transactions), "0");
    store.feed_after(0, None, 10).await.unwrap();
}

#[tokio::test]
async fn connection_of_an_abandoned_lookup_returns_when_its_statement_ended() {
    let catalogue = catalogue().await;
    let (database, store) = (&catalogue.database, store_with_one_connection(catalogue.database.url()));
    store.chart(hash(1)).await.unwrap().unwrap();
    let session = "SELECT pid FROM pg_stat_activity WHERE application_name = 'chart-index'
                   AND datname = current_database() AND query LIKE 'SELECT member.exact_kind%'";
    let before = database.psql(session);
    assert!(before.parse::<u32>().is_ok(), "one session: {before:?}");
    let mut lock = OpenTransaction::begin(database.url());
    lock.run("LOCK TABLE charts IN ACCESS EXCLUSIVE MODE");
    let abandoned = tokio::spawn({
        let store = store.clone();
        async move { store.chart(hash(1)).await }
    });
    catalogue.wait_for_blocked_sessions(1).await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    lock.roll_back();
    assert_eq!(store.chart(hash(2)).await.unwrap().unwrap().chart.hash, hash(2));
    assert_eq!(database.psql(session), before, "the same connection");
}
