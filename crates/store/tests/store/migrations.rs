//! Migrations are applied and reverted.

use std::path::Path;
use std::time::Duration;

use chart_index_domain::ReadError;
use chart_index_store::Store;
use chart_index_tests::{TestDatabase, within};
use tokio::time::timeout;

use crate::support::{Catalogue, OpenTransaction, chart, config, folder, hash};

const TABLES: &str = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
                      WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace";

#[tokio::test]
async fn migrations_can_be_reverted_and_applied_again() {
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
async fn each_migration_can_be_reverted() {
    let catalogue = Catalogue::create().await;
    let applied = "SELECT count(*) FROM _sqlx_migrations";
    let count: u32 = catalogue.database.psql(applied).parse().unwrap();
    for left in (0..count).rev() {
        catalogue.store.revert_last().await.unwrap();
        assert_eq!(catalogue.database.psql(applied), left.to_string());
    }
    assert_eq!(catalogue.database.psql(TABLES), "_sqlx_migrations");
}

/// While a migration holds one table and waits for another, a read that holds the other may wait for the first: a deadlock.
#[tokio::test]
async fn each_migration_excludes_readers_from_one_table() {
    let database = TestDatabase::create().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".up.sql")).collect();
    files.sort();
    assert!(!files.is_empty());
    let excluded: Vec<_> = files.iter().map(|file| tables_without_readers(&database, file)).collect();
    for (file, tables) in files.iter().zip(&excluded) {
        assert!(tables.lines().count() <= 1, "{}:\n{tables}", file.display());
    }
    assert!(excluded.iter().any(|tables| tables == "charts"), "{excluded:?}");
}

/// Runs a migration. Returns the tables that it locks against readers, apart from those that it creates.
fn tables_without_readers(database: &TestDatabase, migration: &Path) -> String {
    let statements = std::fs::read_to_string(migration).unwrap();
    database.psql(&format!(
        "BEGIN;
         CREATE TEMPORARY TABLE existing ON COMMIT DROP AS SELECT oid FROM pg_class WHERE relkind = 'r';
         {statements}
         SELECT relation::regclass FROM pg_locks
         WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relation IN (SELECT oid FROM existing);
         COMMIT"
    ))
}

/// Reverts the migration with this version, and later ones.
async fn revert_from(catalogue: &Catalogue, version: u32) {
    let newest = "SELECT max(version) FROM _sqlx_migrations";
    while catalogue.database.psql(newest).parse::<u32>().unwrap() >= version {
        catalogue.store.revert_last().await.unwrap();
    }
}

/// Replicas and ingests of the version before the previews go on after the migration.
#[tokio::test]
async fn charts_of_an_older_version_have_no_preview() {
    let catalogue = Catalogue::create().await;
    revert_from(&catalogue, 7).await;
    catalogue.database.psql(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         VALUES (sha256('old'), 4, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0)",
    );
    catalogue.store.migrate().await.unwrap();
    catalogue.database.psql(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         VALUES (sha256('new'), 4, -1, 0, -1, 0, 1, 0, 0, 0, 1, 0)",
    );
    let without = "SELECT count(*) FROM charts WHERE density_curve IS NULL";
    assert_eq!(catalogue.database.psql(without), "2");
}

#[tokio::test]
async fn several_processes_can_migrate_at_once() {
    let database = TestDatabase::create().await;
    let stores = [(); 4].map(|()| Store::new(&config(database.url())));
    let [a, b, c, d] = &stores;
    let (a, b, c, d) = tokio::join!(a.migrate(), b.migrate(), c.migrate(), d.migrate());
    for result in [a, b, c, d] {
        result.unwrap();
    }
}

/// A migration that waits for a lock would block all reads of the table.
#[tokio::test]
async fn a_migration_without_its_lock_can_be_retried() {
    let catalogue = Catalogue::create().await;
    revert_from(&catalogue, 7).await;
    let mut ingest = OpenTransaction::begin(catalogue.database.url());
    ingest.run("LOCK TABLE charts IN ROW EXCLUSIVE MODE");
    let migrated = timeout(Duration::from_secs(5), catalogue.store.migrate()).await.unwrap();
    let error = migrated.unwrap_err();
    assert!(error.is_unavailable());
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("run it again"), "{reason}");
    ingest.roll_back();
    catalogue.store.migrate().await.unwrap();
}

/// They wait for an advisory lock, for longer than a migration waits for a table.
#[tokio::test]
async fn a_migration_waits_for_another_one() {
    let catalogue = Catalogue::create().await;
    revert_from(&catalogue, 7).await;
    let mut ingest = OpenTransaction::begin(catalogue.database.url());
    ingest.run("LOCK TABLE charts IN ROW EXCLUSIVE MODE");
    let migrate = || {
        let store = catalogue.store.clone();
        tokio::spawn(async move { store.migrate().await })
    };
    let blocked = migrate();
    let held = "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
                WHERE locktype = 'advisory' AND granted AND database =
                    (SELECT oid FROM pg_database WHERE datname = current_database())";
    let key = async || Some(catalogue.database.psql(held)).filter(|key| !key.is_empty());
    let (key, _) = within(Duration::from_secs(5), key).await;
    assert!(blocked.await.unwrap().is_err());
    ingest.roll_back();

    let mut other = OpenTransaction::begin(catalogue.database.url());
    other.run(&format!("DO $$ BEGIN PERFORM pg_advisory_xact_lock({key}); END $$"));
    let mut waiting = migrate();
    assert!(timeout(Duration::from_millis(1_500), &mut waiting).await.is_err());
    other.commit();
    waiting.await.unwrap().unwrap();
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
