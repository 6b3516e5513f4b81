//! Connections on which nothing arrives and that nothing closes, while new ones work.

use std::time::{Duration, Instant};

use chart_index_domain::search::{SearchIndex, SearchQuery};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::{Proxy, within};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash};

/// The deadline of a request.
const DEADLINE: Duration = Duration::from_secs(5);

/// A catalogue with one chart, and a proxy in front of it.
struct Network {
    catalogue: Catalogue,
    proxy: Proxy,
}

impl Network {
    async fn start() -> Self {
        let catalogue = Catalogue::create().await;
        catalogue.put(&folder(1, [chart(1)]), 1).await;
        let proxy = Proxy::start(catalogue.database.url()).await;
        Self { catalogue, proxy }
    }

    /// The configuration of a store behind the proxy.
    fn config(&self) -> StoreConfig {
        config(self.proxy.url())
    }
}

/// Looks the chart up many times at once and returns the number of failures.
async fn failed_lookups(store: &Store) -> usize {
    let mut lookups = JoinSet::new();
    for _ in 0..64 {
        let store = store.clone();
        lookups.spawn(async move { timeout(DEADLINE, store.chart(hash(1))).await });
    }
    lookups.join_all().await.iter().filter(|outcome| !matches!(outcome, Ok(Ok(Some(_))))).count()
}

#[tokio::test]
async fn lookups_survive_half_open_connections() {
    let network = Network::start().await;
    let store = Store::new(&StoreConfig { max_connections: 4, ..network.config() });
    assert_eq!(failed_lookups(&store).await, 0);
    network.proxy.silence_open_connections();
    let silenced = Instant::now();
    assert_eq!(failed_lookups(&store).await, 0);
    assert!(silenced.elapsed() < DEADLINE, "{:?}", silenced.elapsed());
    assert_eq!(failed_lookups(&store).await, 0);
}

#[tokio::test]
async fn a_search_survives_a_half_open_connection() {
    let network = Network::start().await;
    let store = Store::new(&network.config());
    let search = PostgresSearch::new(store, CatalogueWatch::disabled());
    let total = async || {
        let query = SearchQuery::default();
        let page = search.search(&query);
        timeout(DEADLINE, page).await.unwrap().unwrap().total
    };
    assert_eq!(total().await, 1);
    network.proxy.silence_open_connections();
    assert_eq!(total().await, 1);
}

#[tokio::test]
async fn only_the_write_on_a_half_open_connection_fails() {
    let network = Network::start().await;
    let store = Store::new(&StoreConfig { statement_timeout: Duration::from_secs(1), ..network.config() });
    let mut lock = OpenTransaction::begin(network.catalogue.database.url());
    lock.run("LOCK TABLE chartsets IN EXCLUSIVE MODE");
    let put = tokio::spawn({
        let store = store.clone();
        async move { timeout(DEADLINE, store.put_chartset(&folder(2, [chart(2)]), 2)).await }
    });
    network.catalogue.wait_for_blocked_sessions(1).await;
    network.proxy.silence_open_connections();
    lock.roll_back();
    assert!(put.await.unwrap().unwrap().unwrap_err().is_unavailable());
    // Another chartset: PostgreSQL has not detected the loss of the first client, whose chartset is still
    // locked.
    store.put_chartset(&folder(3, [chart(3)]), 2).await.unwrap();
}

#[tokio::test]
async fn a_half_open_connection_does_not_block_commits() {
    let network = Network::start().await;
    let mut lock = OpenTransaction::begin(network.catalogue.database.url());
    lock.run("DO 'BEGIN PERFORM pg_advisory_xact_lock(7105212083226935402); END'");
    let store = Store::new(&network.config());
    let lost = tokio::spawn(async move { store.put_chartset(&folder(2, [chart(2)]), 2).await });
    network.catalogue.wait_for_blocked_sessions(1).await;
    network.proxy.silence_open_connections();
    // PostgreSQL now grants the lock to a client that it does not hear any longer.
    lock.roll_back();
    let draft = folder(3, [chart(3)]);
    timeout(DEADLINE, network.catalogue.store.put_chartset(&draft, 2)).await.unwrap().unwrap();
    lost.abort();
}

#[tokio::test]
async fn the_catalogue_watch_reconnects() {
    let network = Network::start().await;
    let monitoring = Store::new(&network.config()).monitoring();
    let watch = CatalogueWatch::start(&monitoring, None, Duration::from_millis(50), |_, _| ()).await;
    network.proxy.silence_open_connections();
    let before = watch.sequence();
    network.catalogue.put(&folder(2, [chart(2)]), 2).await;
    within(DEADLINE, async || (watch.sequence() != before).then_some(())).await;
}
