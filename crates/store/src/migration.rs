//! The schema: bringing it up, taking it down, and knowing whether it is recent enough.

use chart_index_domain::ReadError;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection, PgConnection};

use crate::error::is_undefined_table;
use crate::lease::Lease;
use crate::{Store, StoreError};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

/// The database lacks migrations that this binary needs.
#[derive(Debug, thiserror::Error)]
#[error("the schema is at version {found:?}, this binary needs {needed}")]
struct SchemaTooOld {
    found: Option<i64>,
    needed: i64,
}

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
        let connecting = self.connect(self.unlimited_options());
        connecting.await.map_err(|error| StoreError::new(operation, error))
    }
}

async fn finish(
    operation: &'static str,
    connection: PgConnection,
    result: Result<(), MigrateError>,
) -> Result<(), StoreError> {
    match result {
        Ok(()) => connection.close().await.map_err(|error| StoreError::new(operation, error)),
        Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
            Err(StoreError::new(operation, error))
        }
        Err(error) => Err(StoreError::Failed { operation, source: error.into() }),
    }
}

fn newest_version() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0)
}
