//! PostgreSQL is unavailable.

use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use chart_index_domain::search::{SearchIndex, SearchQuery};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::{Proxy, within};

use crate::support::{Catalogue, chart, config, folder, hash, id, removal};

async fn assert_every_read_is_unavailable(store: &Store) {
    fn unavailable<T>(result: &Result<T, ReadError>) -> bool {
        matches!(result, Err(ReadError::Unavailable { .. }))
    }
    let search = PostgresSearch::new(store.clone(), CatalogueWatch::disabled());
    let query = SearchQuery::default();
    let ids = [id(1)];
    let (listed, copies, shown, similar) = tokio::join!(
        Box::pin(store.charts_of_chartsets(&ids)),
        Box::pin(store.copies_of_chartsets(&ids)),
        Box::pin(store.chart_page(hash(1))),
        Box::pin(store.similar_charts(hash(1))),
    );
    assert!(unavailable(&listed) && unavailable(&copies));
    assert!(unavailable(&shown) && unavailable(&similar));
    let (chart, rox, set, source, page, ping) = tokio::join!(
        Box::pin(store.chart(hash(1))),
        Box::pin(store.rox(hash(1))),
        Box::pin(store.chartset(id(1))),
        Box::pin(store.public_source(id(1))),
        search.search(&query),
        Box::pin(store.check_schema()),
    );
    assert!(unavailable(&chart) && unavailable(&rox) && unavailable(&set));
    assert!(unavailable(&source) && unavailable(&page) && unavailable(&ping));
}

#[tokio::test]
async fn calls_fail_quickly_without_postgresql() {
    // Bound and not listening: the port is reserved, and connections are refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("postgres://user@{}/nothing", socket.local_addr().unwrap());
    let store = Store::new(&config(&url));
    let start = Instant::now();
    assert_every_read_is_unavailable(&store).await;
    assert!(store.put_chartset(&folder(1, [chart(1)]), 1).await.unwrap_err().is_unavailable());
    assert!(store.remove(&[removal(hash(1), 1)], 1).await.unwrap_err().is_unavailable());
    assert!(store.migrate().await.unwrap_err().is_unavailable());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let catalogue = Catalogue::create().await;
    catalogue.store.close().await;
    assert_every_read_is_unavailable(&catalogue.store).await;
}

/// A missing database or role, a role without permission to connect, and one that exceeds its limit of
/// connections.
#[tokio::test]
async fn a_refused_login_is_unavailable() {
    let catalogue = Catalogue::create().await;
    let (server, name) = catalogue.database.url().rsplit_once('/').unwrap();
    let address = server.rsplit_once('@').unwrap().1;
    let role = |kind: &str| format!("{name}_{kind}");
    let _ = catalogue.database.psql(&format!(
        "CREATE ROLE {} LOGIN; CREATE ROLE {} LOGIN CONNECTION LIMIT 0; REVOKE CONNECT ON DATABASE {name} FROM PUBLIC;
         GRANT CONNECT ON DATABASE {name} TO {1}",
        role("forbidden"),
        role("limited"),
    ));
    let missing_database = format!("{}_elsewhere", catalogue.database.url());
    let roles = ["missing", "forbidden", "limited"].map(role);
    let refused = roles.map(|role| format!("postgres://{role}@{address}/{name}"));
    for url in refused.iter().chain([&missing_database]) {
        let store = Store::new(&config(url));
        assert_every_read_is_unavailable(&store).await;
        assert!(store.put_chartset(&folder(1, [chart(1)]), 1).await.unwrap_err().is_unavailable());
        assert!(store.process_locks("index").await.unwrap_err().is_unavailable());
    }
    let drop = format!("DROP OWNED BY {0}, {1}; DROP ROLE {0}, {1}", role("forbidden"), role("limited"));
    let _ = catalogue.database.psql(&drop);
}

/// Reads that fail on lost connections do not open the circuit breaker while new connections work.
#[tokio::test]
async fn reads_survive_restarts_of_postgresql() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let mut proxy = Proxy::start(catalogue.database.url()).await;
    let store = Store::new(&config(proxy.url()));
    let open_several = || async {
        let (a, b, c) = tokio::join!(store.chart(hash(1)), store.chart(hash(1)), store.chart(hash(1)));
        assert!([a, b, c].into_iter().all(|chart| chart.unwrap().is_some()));
    };
    for _ in 0..5 {
        open_several().await;
        proxy.cut().await;
        proxy.listen().await;
    }
    open_several().await;
}

/// Cache misses that wait for a connection during an outage would take the permits of requests that hit the
/// cache.
#[tokio::test]
async fn reads_fail_at_once_during_an_outage() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let mut proxy = Proxy::start(catalogue.database.url()).await;
    let store = Store::new(&config(proxy.url()));
    for _ in 0..2 {
        assert!(store.chart(hash(1)).await.unwrap().is_some());
        proxy.cut().await;
        assert_every_read_is_unavailable(&store).await;
        let start = Instant::now();
        for _ in 0..100 {
            assert_every_read_is_unavailable(&store).await;
            assert!(start.elapsed() < Duration::from_secs(1), "600 reads take {:?}", start.elapsed());
        }
        proxy.listen().await;
        within(Duration::from_secs(2), async || store.chart(hash(1)).await.ok()).await;
    }
}

#[tokio::test]
async fn unresponsive_connections_are_closed() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let proxy = Proxy::start(catalogue.database.url()).await;
    let mut config = config(proxy.url());
    config.max_connections = 1;
    config.statement_timeout = Duration::from_millis(100);
    config.acquire_timeout = Duration::from_secs(10);
    let store = Store::new(&config);
    assert!(store.chart(hash(1)).await.unwrap().is_some());
    proxy.silence_open_connections();
    let deadline = Duration::from_millis(50);
    assert!(tokio::time::timeout(deadline, store.chart(hash(1))).await.is_err());
    assert!(store.chart(hash(1)).await.unwrap().is_some(), "the only connection was replaced");
}

#[tokio::test]
async fn reads_survive_terminated_connections() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    for _ in 0..3 {
        let (a, b) = tokio::join!(store.chart(hash(1)), store.rox(hash(1)));
        assert!(a.unwrap().is_some() && b.unwrap().is_some());
        let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                   WHERE application_name = 'chart-index' AND datname = current_database()";
        let _ = catalogue.database.psql(end);
    }
    assert!(store.chart(hash(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_slow_statement_is_cancelled() {
    let catalogue = Catalogue::create().await;
    let mut config = config(catalogue.database.url());
    config.statement_timeout = Duration::from_millis(50);
    let store = Store::new(&config);
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let _ = catalogue.database.psql(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
             AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
         CREATE TRIGGER wait BEFORE UPDATE ON charts FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    assert!(store.remove(&[removal(hash(1), 2)], 2).await.unwrap_err().is_unavailable());
    assert!(catalogue.store.chart(hash(1)).await.unwrap().is_some(), "the transaction was rolled back");
}

/// Drops the function that reads the column whose type changes, which PostgreSQL would refuse.
const DROP_READER: &str = "DROP FUNCTION chart_occurrences";

/// A deployment migrates tables under running replicas, which have prepared statements on them.
#[tokio::test]
async fn reads_survive_a_changed_column_type() {
    let catalogue = Catalogue::create().await;
    let store = &catalogue.store;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let read_on_several_connections = async || {
        let reads = (0..8).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.chartset(id(1)).await.unwrap().is_some() })
        });
        for read in reads.collect::<Vec<_>>() {
            assert!(read.await.unwrap());
        }
    };
    read_on_several_connections().await;
    let _ = catalogue.database.psql(DROP_READER);
    for column_type in ["varchar", "text"] {
        let alter = format!("ALTER TABLE chartset_charts ALTER COLUMN difficulty TYPE {column_type}");
        let _ = catalogue.database.psql(&alter);
        read_on_several_connections().await;
    }
}

#[tokio::test]
async fn reads_survive_lost_prepared_statements() {
    let catalogue = Catalogue::create().await;
    let store = Store::new(&StoreConfig { max_connections: 1, ..config(catalogue.database.url()) });
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    assert!(store.chart(hash(1)).await.unwrap().is_some());
    let _ = catalogue.database.psql(
        "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql
             AS 'BEGIN EXECUTE ''DEALLOCATE ALL''; RETURN NEW; END';
         CREATE TRIGGER forget BEFORE INSERT ON pending_changes FOR EACH ROW EXECUTE FUNCTION forget()",
    );
    store.put_chartset(&folder(2, [chart(2)]), 2).await.unwrap();
    assert!(store.chart(hash(1)).await.unwrap().is_some());
}

/// Calls of `chart-indexer` are not retried by the store, since a transaction may have been committed, but the
/// caller may.
#[tokio::test]
async fn call_after_a_changed_column_type_may_be_retried() {
    let catalogue = Catalogue::create().await;
    let store = Store::new(&StoreConfig { max_connections: 1, ..config(catalogue.database.url()) });
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    assert!(store.column_mismatches(None, 10).await.is_ok());
    let _ = catalogue.database.psql(DROP_READER);
    let alter = "ALTER TABLE chartset_charts ALTER COLUMN difficulty TYPE varchar";
    let _ = catalogue.database.psql(alter);
    assert!(store.column_mismatches(None, 10).await.unwrap_err().is_unavailable());
    assert!(store.column_mismatches(None, 10).await.is_ok());
}
