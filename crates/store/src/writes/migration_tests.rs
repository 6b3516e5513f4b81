//! Runs migrations beside readers and writers of every table, and checks that none of them waits for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chart_index_tests::TestDatabase;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};
use tokio::task::JoinHandle;

use crate::writes::migration::MIGRATOR;
use crate::{Store, StoreConfig};

/// How long readers and writers hold their locks: as a slow list, or the transaction of an ingest.
const OPEN: Duration = Duration::from_millis(50);

/// A database with the first migration and this number of chartsets.
struct Catalogue {
    database: TestDatabase,
    store: Store,
}

impl Catalogue {
    async fn create(chartsets: u32) -> Self {
        let database = TestDatabase::create().await;
        let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
        store.apply(&first_migration()).await.unwrap();
        // The programs of that version number changes within a second.
        for statement in [&*fill(chartsets), CHARTS, "TRUNCATE pending_changes", "VACUUM (ANALYZE)"] {
            let _ = database.psql(statement);
        }
        Self { database, store }
    }

    fn tables(&self) -> Vec<String> {
        let tables = self.database.psql(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
             AND relname <> '_sqlx_migrations'",
        );
        tables.lines().map(str::to_owned).collect()
    }

    /// Runs migrations beside a reader and a writer of each table. Returns what they must not do.
    async fn migrate(&self, migrator: &Migrator) -> Vec<String> {
        let before = self.files();
        let (stop, passes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let mut clients = Vec::new();
        for table in self.tables() {
            for mode in ["ACCESS SHARE", "ROW EXCLUSIVE"] {
                let lock = format!("LOCK TABLE {table} IN {mode} MODE");
                clients.push(self.client(lock, Arc::clone(&stop), Arc::clone(&passes)));
            }
        }
        while passes.load(Ordering::Relaxed) < u32::try_from(clients.len()).unwrap() {
            tokio::time::sleep(OPEN).await;
        }
        self.store.apply(migrator).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        let mut faults = self.rewritten(&before);
        for client in clients {
            faults.extend(client.await.unwrap());
        }
        faults
    }

    /// Takes a lock again and again, and holds it for a moment. Returns an error if it waited for a second.
    fn client(
        &self,
        lock: String,
        stop: Arc<AtomicBool>,
        passes: Arc<AtomicU32>,
    ) -> JoinHandle<Option<String>> {
        let url = self.database.url().to_owned();
        tokio::spawn(async move {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            connection.execute("SET lock_timeout = '1s'").await.unwrap();
            while !stop.load(Ordering::Relaxed) {
                let mut transaction = connection.begin().await.unwrap();
                if let Err(error) = transaction.execute(AssertSqlSafe(lock.clone())).await {
                    return Some(format!("{lock}: {error}"));
                }
                tokio::time::sleep(OPEN).await;
                transaction.commit().await.unwrap();
                passes.fetch_add(1, Ordering::Relaxed);
            }
            None
        })
    }

    /// Each table and index with its file.
    fn files(&self) -> Vec<String> {
        let files = self.database.psql(
            "SELECT relname || ' ' || relfilenode FROM pg_class
             WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace",
        );
        files.lines().map(str::to_owned).collect()
    }

    /// The tables and indexes whose file is gone without them.
    fn rewritten(&self, before: &[String]) -> Vec<String> {
        let after = self.files();
        let name = |file: &str| file.split(' ').next().unwrap().to_owned();
        let is_rewritten =
            |file: &&String| !after.contains(file) && after.iter().any(|other| name(other) == name(file));
        before.iter().filter(is_rewritten).map(|file| format!("rewritten: {}", name(file))).collect()
    }
}

/// Chartsets as an ingest stores them; the triggers write the other tables.
fn fill(chartsets: u32) -> String {
    format!(
        "INSERT INTO chartsets
         (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, source_kind, source_ref,
          keys, bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names,
          title_sort, artist_sort, creator_search, search_words)
         SELECT lpad(to_hex(n), 16, '0'), 'alpha/' || n, decode(repeat('00', 32), 'hex'), 1, n, 'Title', 'Artist',
                'Creator', 'alphaSet', '1', '{{4}}', 90, 100, 60000, 61000, 5, 1, '{{}}', '{{}}', 'title ' || n,
                'artist', 'creator', array_to_tsvector(array['common', 'title' || n])
         FROM generate_series(1, {chartsets}) AS n"
    )
}

const CHARTS: &str =
    "INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
    SELECT id, decode(repeat(id, 4), 'hex'), title, artist, creator, 'Hard', tags FROM chartsets";

fn migrator(migrations: Vec<Migration>) -> Migrator {
    Migrator { migrations: migrations.into(), locking: false, ..Migrator::DEFAULT }
}

fn first_migration() -> Migrator {
    let first = MIGRATOR.iter().map(|migration| migration.version).min().unwrap();
    migrator(MIGRATOR.iter().filter(|migration| migration.version == first).cloned().collect())
}

/// All migrations, and further ones of this statement each.
fn with_further(statements: &[&'static str]) -> Migrator {
    let further = statements.iter().zip(9_000..).map(|(statement, version)| {
        let is_concurrent = statement.contains("CONCURRENTLY");
        Migration::new(
            version,
            "test".into(),
            MigrationType::ReversibleUp,
            statement.into_sql_str(),
            is_concurrent,
        )
    });
    migrator(MIGRATOR.iter().cloned().chain(further).collect())
}

/// What a migration outside of a transaction, or in one, must not do, by its statements.
fn forbidden(migration: &Migration) -> Option<&'static str> {
    let lines = migration.sql.as_str().lines().filter(|line| !line.trim_start().starts_with("--"));
    let sql = lines.collect::<Vec<_>>().join(" ");
    let is_single = !sql.trim_end().trim_end_matches(';').contains(';');
    match migration.no_tx {
        true if !(is_single && sql.contains(" CONCURRENTLY ")) => Some("not one concurrent statement"),
        true if sql.contains("DROP") && !sql.contains("IF EXISTS") => Some("cannot be repeated"),
        false if sql.contains(" CONCURRENTLY ") => Some("lacks -- no-transaction in its first line"),
        false if sql.contains("CREATE INDEX") || sql.contains("CREATE UNIQUE INDEX") => {
            Some("creates an index that is not concurrent")
        }
        _ => None,
    }
}

#[test]
fn indexes_are_created_concurrently() {
    let first = MIGRATOR.iter().map(|migration| migration.version).min().unwrap();
    for migration in MIGRATOR.iter().filter(|migration| migration.version > first) {
        assert_eq!(forbidden(migration), None, "{}", migration.description);
    }
}

const GOOD: [&str; 2] = [
    "ALTER TABLE chartsets ADD COLUMN later text",
    "CREATE INDEX CONCURRENTLY chartsets_by_later ON chartsets (later, title)",
];

#[tokio::test]
async fn migrations_do_not_block_readers_and_writers() {
    assert_eq!(Catalogue::create(2_000).await.migrate(&with_further(&GOOD)).await, [""; 0]);
}

#[tokio::test]
#[ignore = "long: 100,000 chartsets"]
async fn long_migrations_of_a_large_catalogue_do_not_block_readers_and_writers() {
    assert_eq!(Catalogue::create(100_000).await.migrate(&with_further(&GOOD)).await, [""; 0]);
}

/// An interrupted attempt leaves an invalid index, which `IF NOT EXISTS` would accept, or, interrupted before
/// the migration was recorded, a valid one.
#[tokio::test]
async fn an_index_of_an_interrupted_attempt_is_created_again() {
    let catalogue = Catalogue::create(10).await;
    let unique = ["CREATE UNIQUE INDEX CONCURRENTLY chartsets_by_title ON chartsets (title)"];
    let error = catalogue.store.apply(&with_further(&unique)).await.unwrap_err();
    assert!(!error.is_unavailable(), "all have the same title: {error}");
    let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('chartsets_by_title')";
    assert_eq!(catalogue.database.psql(valid), "f");
    let _ = catalogue.database.psql("UPDATE chartsets SET title = title_sort");
    for _ in 0..2 {
        catalogue.store.apply(&with_further(&unique)).await.unwrap();
        assert_eq!(catalogue.database.psql(valid), "t");
        let _ = catalogue.database.psql("DELETE FROM _sqlx_migrations WHERE version = 9000");
    }
}

/// Migration 15 drops an index, which its reverse creates.
#[tokio::test]
async fn an_interrupted_revert_is_repeated() {
    let database = TestDatabase::migrated().await;
    let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
    store.revert_above("revert", 15).await.unwrap();
    let left = "CREATE INDEX chartset_charts_by_beatmap ON chartset_charts (alpha_beatmap_id)";
    let _ = database.psql(left);
    store.revert_above("revert", 14).await.unwrap();
    store.migrate().await.unwrap();
}

/// The second process has no snapshot while it waits, so that the index is completed.
#[tokio::test]
async fn two_processes_create_an_index_concurrently() {
    let catalogue = Catalogue::create(10).await;
    let migrator = with_further(&GOOD);
    let (a, b) = tokio::join!(catalogue.store.apply(&migrator), catalogue.store.apply(&migrator));
    a.unwrap();
    b.unwrap();
}
