//! The address of the database, which may contain a password.

use std::fmt;
use std::str::FromStr;

use chart_index_cli::SecretParser;
use clap::builder::ValueParserFactory;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// The address of a PostgreSQL database, `postgres://user:password@host[:port]/database`.
///
/// A secret: [`Debug`] prints host, port and database only.
#[derive(Clone)]
pub struct DatabaseUrl(PgConnectOptions);

impl DatabaseUrl {
    /// The same database on another host, with the same port, user and password.
    #[must_use]
    pub fn with_host(&self, host: &str) -> Self {
        Self(self.0.clone().host(host))
    }

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

/// The text is not the address of a PostgreSQL database. It is not repeated, since it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected postgres://user:password@host[:port]/database")]
pub struct InvalidDatabaseUrl;

impl ValueParserFactory for DatabaseUrl {
    type Parser = SecretParser<Self>;

    fn value_parser() -> Self::Parser {
        SecretParser::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreConfig;

    #[test]
    fn debug_output_contains_no_password() {
        let url: DatabaseUrl = "postgres://someone:hunter2@db.example:5433/charts".parse().unwrap();
        assert_eq!(format!("{url:?}"), "DatabaseUrl(db.example:5433/charts)");
        let config = StoreConfig::new(url);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn only_postgresql_urls_parse() {
        for bad in ["", "charts", "mysql://a:hunter2@b/c", "postgres://a:hunter2@b:port/c", "http://a/b"] {
            let error = bad.parse::<DatabaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{bad}");
        }
        for good in ["postgres://a:b@c:1/d", "postgresql:///d?host=/run/postgresql", "postgres://c/d"] {
            assert!(good.parse::<DatabaseUrl>().is_ok(), "{good}");
        }
    }
}
