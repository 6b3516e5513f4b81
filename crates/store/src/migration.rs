//! The schema: bringing it up, taking it down, and knowing whether it is recent enough.

use chart_index_domain::ReadError;
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::error::{is_lock_timeout, is_undefined_table};
use crate::lease::Lease;
use crate::{Store, StoreError};

/// How long a migration waits for the lock of a table. All reads of the table queue behind it meanwhile, and a lookup
/// gives up after twice [`StoreConfig::lookup_timeout`](crate::StoreConfig::lookup_timeout).
const LOCK_TIMEOUT: &str = "1s";

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

/// The database lacks migrations that this binary needs.
#[derive(Debug, thiserror::Error)]
#[error("the schema is at version {found:?}, this binary needs {needed}")]
struct SchemaTooOld {
    found: Option<i64>,
    needed: i64,
}

/// A migration did not get a lock within [`LOCK_TIMEOUT`].
#[derive(Debug, thiserror::Error)]
#[error(
    "a statement or transaction that is still running holds a table that the migration has to lock, and it waits no \
     longer than {LOCK_TIMEOUT}, since all reads wait with it; this migration changed nothing: run it again, when no \
     ingest or other long transaction runs"
)]
struct LockTimedOut(#[source] sqlx::Error);

impl Store {
    /// Whether reads can be answered: PostgreSQL is there and has the schema that this binary needs.
    ///
    /// A newer schema is fine: migrations expand before they contract.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while PostgreSQL is away, and also while the schema is older: both pass without
    /// a change to this process.
    pub async fn ping(&self) -> Result<(), ReadError> {
        let operation = "check the schema";
        let found = self.lookup(operation, Self::schema_version).await?;
        let needed = newest_version();
        if found.is_none_or(|found| found < needed) {
            let source = Box::new(SchemaTooOld { found, needed });
            return Err(ReadError::Unavailable { operation, source });
        }
        Ok(())
    }

    async fn schema_version(mut lease: Lease) -> Result<Option<i64>, sqlx::Error> {
        let newest = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success");
        let version = match newest.fetch_one(lease.connection()).await {
            Err(error) if is_undefined_table(&error) => None,
            result => result?,
        };
        Ok(version)
    }

    /// Brings the schema to the version of this binary. Safe to run from several processes at once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] also where a table could not be locked within a second: the migrations before are
    /// applied, and the call may be repeated.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let operation = "migrate";
        let mut connection = self.migration_connection(operation).await?;
        let result = MIGRATOR.run_direct(None, &mut connection, false).await;
        finish(operation, connection, result).await
    }

    /// Takes back the newest migration, with its data.
    pub async fn revert_last(&self) -> Result<(), StoreError> {
        let operation = "revert the last migration";
        let version = self.run_once(operation, Self::schema_version).await?;
        let Some(version) = version else { return Ok(()) };
        self.revert_above(operation, version - 1).await
    }

    /// Takes back every migration, with all data.
    pub async fn revert_all(&self) -> Result<(), StoreError> {
        self.revert_above("revert all migrations", 0).await
    }

    async fn revert_above(&self, operation: &'static str, version: i64) -> Result<(), StoreError> {
        let mut connection = self.migration_connection(operation).await?;
        let result = MIGRATOR.undo(&mut connection, version).await;
        finish(operation, connection, result).await
    }

    /// A connection of its own: a migration that fails leaves its lock behind, which must end with the
    /// connection and not go back to the pool.
    async fn migration_connection(&self, operation: &'static str) -> Result<PgConnection, StoreError> {
        let result = async {
            let mut connection = self.connect(self.unlimited_options()).await?;
            // Waits for other processes that migrate, for as long as it takes them. The migrator takes the same lock
            // again, and could not tell it from that of a table.
            connection.lock().await?;
            connection.execute(AssertSqlSafe(format!("SET lock_timeout = '{LOCK_TIMEOUT}'"))).await?;
            Ok(connection)
        };
        result.await.map_err(|error| migration_error(operation, error))
    }
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
        error => StoreError::Failed { operation, source: error.into() },
    }
}

fn newest_version() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0)
}
