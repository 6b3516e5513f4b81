//! The schema goes up, down, and up again.

use chart_index_domain::ReadError;
use chart_index_store::Store;
use chart_index_tests::TestDatabase;

use crate::support::{Catalogue, chart, config, folder, hash};

const TABLES: &str = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
                      WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace";

#[tokio::test]
async fn migrations_go_up_and_down_and_up_again() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let up = catalogue.database.psql(TABLES);
    catalogue.store.revert_all().await.unwrap();
    assert_eq!(catalogue.database.psql(TABLES), "_sqlx_migrations");
    catalogue.store.migrate().await.unwrap();
    assert_eq!(catalogue.database.psql(TABLES), up);
    assert_eq!(catalogue.store.chart(hash(1)).await.unwrap(), None);
}

#[tokio::test]
async fn each_migration_can_be_taken_back() {
    let catalogue = Catalogue::create().await;
    let applied = "SELECT count(*) FROM _sqlx_migrations";
    let count: u32 = catalogue.database.psql(applied).parse().unwrap();
    for left in (0..count).rev() {
        catalogue.store.revert_last().await.unwrap();
        assert_eq!(catalogue.database.psql(applied), left.to_string());
    }
    assert_eq!(catalogue.database.psql(TABLES), "_sqlx_migrations");
}

#[tokio::test]
async fn migrating_from_several_processes_at_once_is_safe() {
    let database = TestDatabase::create().await;
    let stores = [(); 4].map(|()| Store::new(&config(database.url())));
    let [a, b, c, d] = &stores;
    let (a, b, c, d) = tokio::join!(a.migrate(), b.migrate(), c.migrate(), d.migrate());
    for result in [a, b, c, d] {
        result.unwrap();
    }
}

#[tokio::test]
async fn a_store_without_its_schema_is_not_ready() {
    let database = TestDatabase::create().await;
    let store = Store::new(&config(database.url()));
    assert!(matches!(store.ping().await, Err(ReadError::Unavailable { .. })));
    store.migrate().await.unwrap();
    store.ping().await.unwrap();
    store.revert_last().await.unwrap();
    assert!(matches!(store.ping().await, Err(ReadError::Unavailable { .. })));
}
