//! What a server is and how it is set up, for checks of an installation.

use crate::connection::database_locale::has_letters;
use crate::{Store, StoreError};

/// A PostgreSQL server, and the database on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReport {
    /// The version as the server names it, such as `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
    /// The first number of the version.
    pub major_version: u32,
    /// The encoding of the database, such as `UTF8`.
    pub encoding: String,
    /// `LC_CTYPE` of the database.
    pub locale: String,
    /// Whether a commit is on disk before it is confirmed: not with `synchronous_commit = off`.
    pub commits_are_durable: bool,
    /// Connections for users that are no superusers.
    pub max_connections: u32,
    /// The size of the database in bytes.
    pub database_bytes: u64,
    /// The time by the clock of the server, in Unix epoch milliseconds.
    pub clock_ms: i64,
}

#[derive(sqlx::FromRow)]
struct ReportRow {
    version: String,
    major_version: i32,
    encoding: String,
    locale: String,
    commits_are_durable: bool,
    max_connections: i32,
    database_bytes: i64,
    clock_ms: i64,
}

impl Store {
    /// Describes the server and the database, with any schema or none.
    pub async fn server_report(&self) -> Result<ServerReport, StoreError> {
        self.run_once("describe the server", |mut connection| async move {
            let row: ReportRow = sqlx::query_as(
                "SELECT current_setting('server_version') AS version,
                        current_setting('server_version_num')::integer / 10000 AS major_version,
                        pg_encoding_to_char(encoding)::text AS encoding, datctype::text AS locale,
                        current_setting('synchronous_commit') <> 'off' AS commits_are_durable,
                        current_setting('max_connections')::integer
                            - current_setting('superuser_reserved_connections')::integer AS max_connections,
                        pg_database_size(oid) AS database_bytes,
                        (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock_ms
                 FROM pg_database WHERE datname = current_database()",
            )
            .fetch_one(&mut *connection)
            .await?;
            Ok(ServerReport {
                version: row.version,
                major_version: row.major_version.unsigned_abs(),
                encoding: row.encoding,
                locale: row.locale,
                commits_are_durable: row.commits_are_durable,
                max_connections: row.max_connections.unsigned_abs(),
                database_bytes: row.database_bytes.unsigned_abs(),
                clock_ms: row.clock_ms,
            })
        })
        .await
    }

    /// Whether `pg_trgm` finds letters outside of ASCII in the locale of the database.
    ///
    /// # Errors
    /// Also if the extension is missing, and the user may not create it.
    pub async fn has_letters(&self) -> Result<bool, StoreError> {
        self.run_once("check the locale of the database", |mut connection| async move {
            has_letters(&mut connection).await
        })
        .await
    }
}
