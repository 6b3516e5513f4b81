//! Schema migrations, and the check whether the schema is recent enough.

use std::sync::LazyLock;
use std::time::Duration;

use chart_index_domain::ReadError;
use chart_index_domain::text::FOLDING_VERSION;
use sqlx::migrate::{Migrate, MigrateError, Migration, Migrator};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::time::sleep;

use crate::connection::database_locale::{NoLetters, has_letters};
use crate::connection::pooled_connection::PooledConnection;
use crate::error::{is_lock_timeout, is_undefined_table};
use crate::writes::{folding, listed_charts};
use crate::{Store, StoreError};

/// `lock_timeout` of a migration in a transaction. While it waits for a table, all reads and writes of the
/// table queue behind it, and none of them may wait longer than a second.
const LOCK_TIMEOUT: &str = "500ms";
/// The key of the advisory lock of the process that migrates.
const MIGRATION_LOCK: i64 = 6_502_849_173_350_441_217;
/// How often a process tries to get that lock. One that waited for it in PostgreSQL would have a snapshot, for
/// the end of which `CREATE INDEX CONCURRENTLY` waits: a deadlock.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!("./migrations");
    migrator.set_locking(false);
    // Migrations of a newer version: this one works with its schema, and has nothing to apply.
    migrator.set_ignore_missing(true);
    migrator
});

/// The database lacks migrations that this program needs.
#[derive(Debug, thiserror::Error)]
#[error(
    "schema version {} is too old, this program needs {needed}: run `chart-indexer migrate` of this version",
    .found.unwrap_or(0)
)]
struct SchemaTooOld {
    found: Option<i64>,
    needed: i64,
}

/// The text of the catalogue is folded by another version.
#[derive(Debug, thiserror::Error)]
#[error(
    "the catalogue has version {} of the text folding, this program needs {FOLDING_VERSION}: run `chart-indexer \
     migrate` of this version",
    .found.unwrap_or(0)
)]
struct OtherFolding {
    found: Option<i32>,
}

/// The newest migration of the database is not known to this program.
#[derive(Debug, thiserror::Error)]
#[error(
    "schema version {found} is newer than this program: revert it with the version of the program that applied it"
)]
struct UnknownMigration {
    found: i64,
}

/// The database has another migration under the same number: one was edited, as before the first release.
#[derive(Debug, thiserror::Error)]
#[error(
    "migration {version} of the database differs from that of this program: an unreleased version created the \
     database, which cannot be upgraded; create a new one (for `make run`, delete the folder .run) and ingest again"
)]
struct OtherMigration {
    version: i64,
}

/// A migration did not get the lock of a table within [`LOCK_TIMEOUT`].
#[derive(Debug, thiserror::Error)]
#[error(
    "lock timeout: a running transaction holds a table that the migration must lock, and all reads of the table wait \
     with it, so it waits {LOCK_TIMEOUT} at most; this migration changed nothing: run it again when no ingest or other \
     long transaction is running"
)]
struct LockTimedOut(#[source] sqlx::Error);

impl Store {
    /// Checks that PostgreSQL is available and has the schema and the text folding that this program needs.
    ///
    /// A newer schema is accepted: migrations expand before they contract. Another version of the folding is
    /// not: searches would miss words.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while PostgreSQL is unavailable, the schema is older, or the folding differs:
    /// none needs a restart of this process.
    pub async fn check_schema(&self) -> Result<(), ReadError> {
        let operation = "check the schema";
        let found = self.short_read(operation, Self::schema_version).await?;
        let needed = newest_version();
        if found.is_none_or(|found| found < needed) {
            let source = Box::new(SchemaTooOld { found, needed });
            return Err(ReadError::Unavailable { operation, source });
        }
        let read = |mut connection: PooledConnection| async move { folding::version(&mut connection).await };
        let found = self.short_read(operation, read).await?;
        if found != Some(FOLDING_VERSION) {
            return Err(ReadError::Unavailable { operation, source: Box::new(OtherFolding { found }) });
        }
        Ok(())
    }

    async fn schema_version(mut connection: PooledConnection) -> Result<Option<i64>, sqlx::Error> {
        let newest = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success");
        let version = match newest.fetch_one(&mut *connection).await {
            Err(error) if is_undefined_table(&error) => None,
            result => result?,
        };
        Ok(version)
    }

    /// Applies the pending migrations, fills what lists filter charts by where an earlier version left it
    /// empty, and folds the catalogue again if the version of its text folding is not that of this program.
    /// Several processes may call it at once. A newer schema stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] also if a table could not be locked within half a second. The previous
    /// migrations are applied, and the call may be retried. A new database must have a locale in which
    /// `pg_trgm` works.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.check_locale().await?;
        self.apply(&MIGRATOR).await?;
        let operation = "update the rows of an earlier version";
        let mut connection = self.migration_connection(operation).await?;
        // First the lists: replicas become ready when the folding has its version.
        let result = async {
            listed_charts::fill(&mut connection).await?;
            folding::fold_catalogue(&mut connection).await
        };
        let result = result.await.map_err(MigrateError::Execute);
        finish(operation, connection, result).await
    }

    /// Refuses a new database without letters outside of ASCII. A catalogue works in one, slowly.
    async fn check_locale(&self) -> Result<(), StoreError> {
        let operation = "check the locale of the database";
        let is_new = self.run_once(operation, Self::schema_version).await?.is_none();
        let mut connection = self.migration_connection(operation).await?;
        let has_letters = has_letters(&mut connection).await;
        let has_letters = has_letters.map_err(|error| StoreError::new(operation, error))?;
        if !has_letters && is_new {
            return Err(StoreError::Failed { operation, source: NoLetters.into() });
        }
        if !has_letters {
            tracing::warn!("the locale of the database has no letters outside of ASCII");
        }
        finish(operation, connection, Ok(())).await
    }

    pub(crate) async fn apply(&self, migrator: &Migrator) -> Result<(), StoreError> {
        let operation = "migrate";
        let mut connection = self.migration_connection(operation).await?;
        let result = apply(migrator, &mut connection).await;
        finish(operation, connection, result).await
    }

    /// Reverts the newest migration and deletes its data.
    pub async fn revert_last(&self) -> Result<(), StoreError> {
        let operation = "revert the last migration";
        let version = self.run_once(operation, Self::schema_version).await?;
        let Some(version) = version else { return Ok(()) };
        if version > newest_version() {
            let source = UnknownMigration { found: version }.into();
            return Err(StoreError::Failed { operation, source });
        }
        self.revert_above(operation, version - 1).await
    }

    /// Reverts every migration and deletes all data.
    pub async fn revert_all(&self) -> Result<(), StoreError> {
        self.revert_above("revert all migrations", 0).await
    }

    pub(crate) async fn revert_above(&self, operation: &'static str, version: i64) -> Result<(), StoreError> {
        let mut connection = self.migration_connection(operation).await?;
        let result = revert(&MIGRATOR, &mut connection, version).await;
        finish(operation, connection, result).await
    }

    /// Opens a connection outside of the pool: a failed migration leaves its lock behind, which ends with the
    /// connection.
    async fn migration_connection(&self, operation: &'static str) -> Result<PgConnection, StoreError> {
        let result = async {
            // sqlx creates its table before each migration, if it does not exist.
            let options = self.unlimited_options().clone().options([("client_min_messages", "warning")]);
            let mut connection = self.connect(&options).await?;
            // Waits without a limit for other processes that migrate.
            let lock = "SELECT pg_try_advisory_lock($1)";
            while !sqlx::query_scalar(lock).bind(MIGRATION_LOCK).fetch_one(&mut connection).await? {
                sleep(LOCK_INTERVAL).await;
            }
            Ok(connection)
        };
        result.await.map_err(|error| migration_error(operation, error))
    }
}

async fn apply(migrator: &Migrator, connection: &mut PgConnection) -> Result<(), MigrateError> {
    connection.ensure_migrations_table(&migrator.table_name).await?;
    let applied = connection.list_applied_migrations(&migrator.table_name).await?;
    for migration in migrator.iter().filter(|migration| !migration.migration_type.is_down_migration()) {
        if !applied.iter().any(|applied| applied.version == migration.version) {
            set_lock_timeout(migration, connection).await?;
            drop_earlier_index(migration, connection).await?;
        }
        // Also compares those that are applied.
        migrator.run_direct(Some(migration.version), connection, false).await?;
    }
    Ok(())
}

/// Reverts the migrations above a version.
async fn revert(migrator: &Migrator, connection: &mut PgConnection, to: i64) -> Result<(), MigrateError> {
    connection.ensure_migrations_table(&migrator.table_name).await?;
    let applied = connection.list_applied_migrations(&migrator.table_name).await?;
    let is_applied = |version| applied.iter().any(|applied| applied.version == version);
    let down = migrator.iter().rev().filter(|migration| migration.migration_type.is_down_migration());
    for migration in down.filter(|migration| migration.version > to && is_applied(migration.version)) {
        set_lock_timeout(migration, connection).await?;
        drop_earlier_index(migration, connection).await?;
        migrator.undo(&mut *connection, migration.version - 1).await?;
    }
    Ok(())
}

/// Sets the lock timeout of a migration. One outside of a transaction creates or drops an index concurrently:
/// it blocks no one, and waits for the end of every transaction that began before it.
async fn set_lock_timeout(migration: &Migration, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let timeout = if migration.no_tx { "0" } else { LOCK_TIMEOUT };
    connection.execute(AssertSqlSafe(format!("SET lock_timeout = '{timeout}'"))).await.map(drop)
}

/// Drops what an interrupted attempt has left of the index that a migration creates concurrently: an invalid
/// index, or a valid one if the migration was not recorded any more.
async fn drop_earlier_index(migration: &Migration, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = migration.sql.as_str();
    let created = ["CREATE INDEX CONCURRENTLY ", "CREATE UNIQUE INDEX CONCURRENTLY "];
    let created = created.iter().find_map(|create| sql.split_once(create));
    let Some(name) = created.and_then(|(_, rest)| rest.split_whitespace().next()) else { return Ok(()) };
    let drop_index = format!("DROP INDEX CONCURRENTLY IF EXISTS {name}");
    connection.execute(AssertSqlSafe(drop_index)).await.map(drop)
}

async fn finish(
    operation: &'static str,
    connection: PgConnection,
    result: Result<(), MigrateError>,
) -> Result<(), StoreError> {
    match result {
        Ok(()) => connection.close().await.map_err(|error| StoreError::new(operation, error)),
        Err(error) => Err(migration_error(operation, error)),
    }
}

fn migration_error(operation: &'static str, error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)
            if is_lock_timeout(&error) =>
        {
            StoreError::Unavailable { operation, source: LockTimedOut(error).into() }
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            StoreError::new(operation, error)
        }
        MigrateError::VersionMismatch(version) => {
            StoreError::Failed { operation, source: OtherMigration { version }.into() }
        }
        error => StoreError::Failed { operation, source: error.into() },
    }
}

fn newest_version() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0)
}
