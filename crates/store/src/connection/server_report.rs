//! What a server is and how it is set up, for checks of an installation.

use crate::connection::database_locale::has_letters;
use crate::{Store, StoreError};

/// A PostgreSQL server, and the database on it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ServerReport {
    /// The version as the server names it, such as `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
    /// The first number of the version.
    #[sqlx(try_from = "i32")]
    pub major_version: u32,
    /// The encoding of the database, such as `UTF8`.
    pub encoding: String,
    /// `LC_CTYPE` of the database.
    pub locale: String,
    /// Whether a commit is on disk before it is confirmed: not with `synchronous_commit = off`.
    pub commits_are_durable: bool,
    /// Connections for users that are no superusers.
    #[sqlx(try_from = "i32")]
    pub max_connections: u32,
    /// The size of the database in bytes.
    #[sqlx(try_from = "i64")]
    pub database_bytes: u64,
    /// The time by the clock of the server, in Unix epoch milliseconds.
    pub clock_ms: i64,
}

impl Store {
    /// Describes the server and the database, with any schema or none.
    pub async fn server_report(&self) -> Result<ServerReport, StoreError> {
        self.run_once("describe the server", |mut connection| async move {
            sqlx::query_as(
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
            .await
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
