//! Migrations are applied and reverted.

use std::path::Path;
use std::time::Duration;

use chart_index_domain::ReadError;
use chart_index_store::Store;
use chart_index_tests::TestDatabase;
use tokio::time::timeout;

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash, titled};

const TABLES: &str = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
                      WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace";

#[tokio::test]
async fn migrations_can_be_reverted_and_applied_again() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let up = catalogue.database.psql(TABLES);
    let applied = "SELECT count(*) FROM _sqlx_migrations";
    let count: u32 = catalogue.database.psql(applied).parse().unwrap();
    for left in (0..count).rev() {
        catalogue.store.revert_last().await.unwrap();
        assert_eq!(catalogue.database.psql(applied), left.to_string());
    }
    assert_eq!(catalogue.database.psql(TABLES), "_sqlx_migrations");
    catalogue.store.migrate().await.unwrap();
    assert_eq!(catalogue.database.psql(TABLES), up);
    assert_eq!(catalogue.store.chart(hash(1)).await.unwrap(), None);
}

/// While a migration holds one table and waits for another, a read that holds the other may wait for the first:
/// a deadlock.
#[tokio::test]
async fn each_migration_excludes_readers_from_one_table() {
    let database = TestDatabase::create().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".up.sql")).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let statements = std::fs::read_to_string(&file).unwrap();
        if statements.starts_with("-- no-transaction") {
            // Its index locks no reader out.
            let _ = database.psql(&statements);
            continue;
        }
        let tables = tables_without_readers(&database, &statements);
        assert!(tables.lines().count() <= 1, "{}:\n{tables}", file.display());
    }
    let later = tables_without_readers(&database, "ALTER TABLE charts ADD COLUMN later text;");
    assert_eq!(later, "charts", "locks are found");
}

/// Runs the statements of a migration. Returns the tables that it locks against readers, except for those that
/// it creates.
fn tables_without_readers(database: &TestDatabase, statements: &str) -> String {
    database.psql(&format!(
        "BEGIN;
         CREATE TEMPORARY TABLE existing ON COMMIT DROP AS SELECT oid FROM pg_class WHERE relkind IN ('r', 'v');
         {statements}
         SELECT relation::regclass FROM pg_locks
         WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relation IN (SELECT oid FROM existing);
         COMMIT"
    ))
}

/// Those of a version before the column.
#[tokio::test]
async fn rows_without_a_main_bpm_are_filled() {
    let catalogue = Catalogue::create().await;
    for number in 1..=3_u32 {
        catalogue.put(&folder(number.into(), [chart(number)]), 10).await;
    }
    let rows = "SELECT string_agg(shown_charts::text, ' ' ORDER BY chartset_id) FROM shown_charts";
    let filled = catalogue.database.psql(rows);
    let _ = catalogue.database.psql("UPDATE shown_charts SET bpm_main = NULL");
    assert_ne!(catalogue.database.psql(rows), filled);
    catalogue.store.migrate().await.unwrap();
    assert_eq!(catalogue.database.psql(rows), filled);
}

/// Blocks every migration, as an ingest blocks one that changes a table of the catalogue: the first one waits
/// for no other table.
const BLOCK_MIGRATIONS: &str = "LOCK TABLE _sqlx_migrations IN SHARE MODE";

/// A migration that waits for a lock would block all reads of the table.
#[tokio::test]
async fn a_migration_without_its_lock_can_be_retried() {
    let catalogue = Catalogue::create().await;
    catalogue.store.revert_all().await.unwrap();
    let mut holder = OpenTransaction::begin(catalogue.database.url());
    holder.run(BLOCK_MIGRATIONS);
    let migrated = timeout(Duration::from_secs(5), catalogue.store.migrate()).await.unwrap();
    let error = migrated.unwrap_err();
    assert!(error.is_unavailable());
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("run it again"), "{reason}");
    assert_eq!(catalogue.database.psql(TABLES), "_sqlx_migrations", "it changed nothing");
    holder.roll_back();
    catalogue.store.migrate().await.unwrap();
}

/// For longer than it waits for a table, with the key of `migration.rs`.
#[tokio::test]
async fn a_migration_waits_for_another_one() {
    let catalogue = Catalogue::create().await;
    catalogue.store.revert_all().await.unwrap();
    let mut other = OpenTransaction::begin(catalogue.database.url());
    other.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock(6502849173350441217); END $$");
    let store = catalogue.store.clone();
    let mut waiting = tokio::spawn(async move { store.migrate().await });
    assert!(timeout(Duration::from_millis(1_500), &mut waiting).await.is_err());
    other.commit();
    waiting.await.unwrap().unwrap();
}

/// Such as one that was created before the migrations of the first release were combined.
/// `pg_trgm` takes letters from the locale.
#[tokio::test]
async fn new_database_without_letters_outside_of_ascii_is_refused() {
    let database = TestDatabase::create().await;
    let (server, name) = database.url().rsplit_once('/').unwrap();
    let name = format!("{name}_ascii");
    let _ = database.psql(&format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
    ));
    let url = format!("{server}/{name}");
    let store = Store::new(&config(&url));
    let error = store.migrate().await.unwrap_err();
    assert!(!error.is_unavailable());
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("LOCALE 'C.UTF-8'"), "{cause}");
    let found =
        "SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'), to_regclass('charts') IS NULL";
    assert_eq!(TestDatabase::psql_on(&url, found), "0|t", "nothing is created");

    // A database of before this check stays usable.
    let _ = TestDatabase::psql_on(
        &url,
        "CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL,
             installed_on timestamptz NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL,
             execution_time bigint NOT NULL);
         INSERT INTO _sqlx_migrations VALUES (0, 'earlier', now(), true, '', 0)",
    );
    store.migrate().await.unwrap();
    store.close().await;
    let _ = database.psql(&format!("DROP DATABASE {name}"));
}

#[tokio::test]
async fn database_with_an_edited_migration_is_refused() {
    let catalogue = Catalogue::create().await;
    catalogue.database.psql("UPDATE _sqlx_migrations SET checksum = '\\x00'");
    let error = catalogue.store.migrate().await.unwrap_err();
    assert!(!error.is_unavailable());
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("create a new one"), "{reason}");
}

/// Programs before migration 8 have left changes without a number.
#[tokio::test]
async fn changes_without_a_number_get_one() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    assert_eq!(catalogue.last_sequence(), 2);
    while catalogue.database.psql("SELECT max(version) FROM _sqlx_migrations") != "7" {
        catalogue.store.revert_last().await.unwrap();
    }
    catalogue.database.psql("UPDATE chartsets SET updated_at_ms = updated_at_ms + 1");
    assert_eq!(catalogue.last_sequence(), 2);
    catalogue.store.migrate().await.unwrap();
    assert_eq!(catalogue.last_sequence(), 3);
    assert_eq!(catalogue.store.feed_mismatches().await.unwrap(), []);
    assert_eq!(catalogue.database.psql("SELECT count(*) FROM pending_changes"), "0");
}

/// After a rollback of the programs, deployments run `migrate` of the older version again.
#[tokio::test]
async fn newer_migrations_are_left_alone() {
    let catalogue = Catalogue::create().await;
    catalogue.database.psql(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         SELECT max(version) + 1, 'newer', true, '\\x00', 0 FROM _sqlx_migrations",
    );
    catalogue.store.migrate().await.unwrap();
    catalogue.store.check_schema().await.unwrap();
    let error = catalogue.store.revert_last().await.unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("is newer than this program"), "{reason}");
    assert!(!catalogue.database.psql(TABLES).is_empty());
    let newest = "SELECT description FROM _sqlx_migrations ORDER BY version DESC LIMIT 1";
    assert_eq!(catalogue.database.psql(newest), "newer");
}

#[tokio::test]
async fn a_store_without_its_schema_is_not_ready() {
    let database = TestDatabase::create().await;
    let store = Store::new(&config(database.url()));
    assert!(matches!(store.check_schema().await, Err(ReadError::Unavailable { .. })));
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
    store.revert_last().await.unwrap();
    assert!(matches!(store.check_schema().await, Err(ReadError::Unavailable { .. })));
}

/// The programs before the version of the folding increased wrote other columns.
#[tokio::test]
async fn a_catalogue_of_another_folding_is_folded_by_migrate() {
    let catalogue = Catalogue::create().await;
    for (number, title) in (1..).zip(["Bjørn", "하늘연못", "other"]) {
        catalogue.put(&titled(number, title), number.into()).await;
    }
    let state = "SELECT (SELECT array_agg(chartsets ORDER BY id) FROM chartsets)::text,
                        (SELECT array_agg(shown_chartsets ORDER BY id) FROM shown_chartsets)::text,
                        (SELECT last_sequence FROM change_feed)";
    let stored = catalogue.database.psql(state);
    for version in [0, 99] {
        catalogue.database.psql(&format!(
            "UPDATE text_folding SET version = {version};
             UPDATE chartsets SET title_sort = 'a', creator_search = 'b', search_words = '' WHERE title <> 'other'"
        ));
        assert_ne!(catalogue.database.psql(state), stored);
        let refused = catalogue.store.check_schema().await;
        assert!(matches!(refused, Err(ReadError::Unavailable { .. })), "{refused:?}");
        catalogue.store.migrate().await.unwrap();
        catalogue.store.check_schema().await.unwrap();
        assert_eq!(catalogue.database.psql(state), stored);
    }
}
