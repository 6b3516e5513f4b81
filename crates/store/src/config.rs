//! Where the database is and how patient to be with it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use url::Url;

/// The address of a PostgreSQL database, `postgres://user:password@host:port/database`.
///
/// A secret: [`Debug`] shows host, port and database only.
#[derive(Clone)]
pub struct DatabaseUrl(PgConnectOptions);

impl DatabaseUrl {
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.0.clone()
    }
}

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| InvalidDatabaseUrl)?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(InvalidDatabaseUrl);
        }
        text.parse().map(Self).map_err(|_| InvalidDatabaseUrl)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (self.0.get_host(), self.0.get_port());
        write!(f, "DatabaseUrl({host}:{port}/{})", self.0.get_database().unwrap_or_default())
    }
}

/// The text is not the address of a PostgreSQL database. Says nothing of the text: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a database URL is postgres://user:password@host:port/database")]
pub struct InvalidDatabaseUrl;

/// How to reach PostgreSQL.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The database.
    pub url: DatabaseUrl,
    /// The most connections at a time.
    pub max_connections: u32,
    /// How long a caller waits for a connection, new ones included. While PostgreSQL is away, every answer takes
    /// this long.
    pub acquire_timeout: Duration,
    /// How long one statement may run before PostgreSQL ends it; zero for as long as it takes. Migrations are
    /// never ended.
    pub statement_timeout: Duration,
}

impl StoreConfig {
    /// The values for a server that answers requests: 16 connections, 1 second to get one, 5 seconds a statement.
    #[must_use]
    pub const fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            max_connections: 16,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_url_never_shows_its_password() {
        let url: DatabaseUrl = "postgres://someone:hunter2@db.example:5433/charts".parse().unwrap();
        assert_eq!(format!("{url:?}"), "DatabaseUrl(db.example:5433/charts)");
        let config = StoreConfig::new(url);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn only_addresses_of_postgresql_parse() {
        for bad in ["", "charts", "mysql://a:hunter2@b/c", "postgres://a:hunter2@b:port/c", "http://a/b"] {
            let error = bad.parse::<DatabaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{bad}");
        }
        for good in ["postgres://a:b@c:1/d", "postgresql:///d?host=/run/postgresql", "postgres://c/d"] {
            assert!(good.parse::<DatabaseUrl>().is_ok(), "{good}");
        }
    }
}
