//! More concurrent searches than the limit.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use chart_index_domain::search::{Bounds, SearchIndex, SearchQuery};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::within;
use tokio::task::JoinSet;

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash};

/// Searches of the test database wait for this advisory lock; lookups do not.
const GATE: &str = "ALTER TABLE chartsets RENAME TO stored_chartsets;
     CREATE FUNCTION pass_gate() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
     BEGIN
         IF current_query() LIKE '%AS counted%' THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
         RETURN true;
     END $$;
     CREATE VIEW chartsets AS SELECT * FROM stored_chartsets WHERE pass_gate()";

#[tokio::test]
async fn searches_leave_connections_to_lookups() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    let _ = catalogue.database.psql(GATE);
    let max_searches = NonZeroUsize::new(3).unwrap();
    let config = StoreConfig { max_connections: 8, max_searches, ..config(catalogue.database.url()) };
    let store = Store::new(&config);
    let mut gate = OpenTransaction::begin(catalogue.database.url());
    gate.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock(1); END $$");

    let mut searches = JoinSet::new();
    for number in 0..20 {
        let search = PostgresSearch::new(store.clone(), CatalogueWatch::disabled());
        // All different, so that no two share a count.
        let length_ms = Bounds { min: Some(f64::from(number)), max: None };
        let query = SearchQuery { length_ms, ..SearchQuery::default() };
        searches.spawn(async move { search.search(&query).await });
    }
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    within(Duration::from_secs(2), async || (catalogue.database.psql(waiting) == "3").then_some(())).await;
    for _ in 0..100 {
        let start = Instant::now();
        assert!(store.chart(hash(1)).await.unwrap().is_some());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
    assert_eq!(catalogue.database.psql(waiting), "3");

    gate.commit();
    for page in searches.join_all().await {
        assert_eq!(page.unwrap().total, 1);
    }
}
