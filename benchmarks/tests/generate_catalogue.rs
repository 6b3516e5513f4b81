//! A synthetic catalogue in a real database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use chart_index_store::{CatalogueCounts, Store, StoreConfig};
use chart_index_tests::TestDatabase;

/// A migrated, empty database and a store on it.
async fn database() -> (TestDatabase, Store) {
    let database = TestDatabase::migrated().await;
    let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
    (database, store)
}

fn generate(database: &TestDatabase, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_generate-catalogue"));
    program.args(["--database-url", database.url()]).args(arguments).output().unwrap()
}

#[tokio::test]
async fn generated_chartsets_match_their_charts() {
    let (database, store) = database().await;
    let run = generate(&database, &["--chartsets", "500", "--charts", "1667"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 500, charts: 1_667 });
    let (mismatches, last) = store.column_mismatches(None, 1_000).await.unwrap();
    assert_eq!(mismatches, []);
    assert_eq!(
        store.column_mismatches(last, 1).await.unwrap(),
        (vec![], None),
        "all chartsets were compared"
    );
}

#[tokio::test]
async fn database_with_charts_requires_add() {
    let (database, store) = database().await;
    let size = ["--chartsets", "20", "--charts", "60"];
    assert!(generate(&database, &size).status.success());
    let another = [&size[..], &["--seed", "2"]].concat();
    let failed = generate(&database, &another);
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("--add"));
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 20, charts: 60 });
    assert!(generate(&database, &[&another[..], &["--add"]].concat()).status.success());
    assert_eq!(store.counts().await.unwrap(), CatalogueCounts { chartsets: 40, charts: 120 });
}

#[tokio::test]
async fn missing_schema_is_an_error() {
    let database = TestDatabase::create().await;
    let failed = generate(&database, &["--chartsets", "20", "--charts", "60"]);
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("chart-indexer migrate"));
}
