//! The settings `DATABASE_URL` and `DATABASE_URL_FILE`.

use chart_index_cli::SecretParser;
use clap::Args;

use crate::DatabaseUrl;

/// The database that a program uses.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArguments {
    /// PostgreSQL database: `postgres://user:password@host[:port]/database`
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true, value_name = "URL")]
    database_url: Option<DatabaseUrl>,

    /// File with the value of `DATABASE_URL`
    #[arg(
        long,
        env = "DATABASE_URL_FILE",
        global = true,
        value_name = "FILE",
        conflicts_with = "database_url",
        value_parser = SecretParser::<DatabaseUrl>::in_file()
    )]
    database_url_file: Option<DatabaseUrl>,
}

impl DatabaseArguments {
    /// The address of the database, if one is configured.
    #[must_use]
    pub fn url(&self) -> Option<&DatabaseUrl> {
        self.database_url.as_ref().or(self.database_url_file.as_ref())
    }
}
