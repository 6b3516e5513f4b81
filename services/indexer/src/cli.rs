//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetId, NoteHash};
use chart_index_redis::RedisArguments;
use chart_index_search::MeilisearchArguments;
use chart_index_store::{DatabaseUrl, Store, StoreConfig};
use chart_index_telemetry::LogConfig;
use clap::{Args, Parser, Subcommand};

/// Reads chart files and fills the index.
#[derive(Debug, Parser)]
#[command(name = "chart-indexer", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    #[command(flatten)]
    pub(crate) logging: LogConfig,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The PostgreSQL database of the index
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true, value_name = "URL")]
    pub(crate) database_url: Option<DatabaseUrl>,
}

impl StoreArguments {
    /// A store for a program that writes: it waits longer than one that answers requests.
    ///
    /// # Errors
    /// No database is named.
    pub(crate) fn connect(&self) -> Result<Store> {
        let url = self.database_url.clone().context("no database: set DATABASE_URL or --database-url")?;
        let patience = Duration::from_secs(10);
        let config = StoreConfig {
            acquire_timeout: patience,
            lookup_timeout: patience,
            statement_timeout: 30 * patience,
            ..StoreConfig::new(url)
        };
        Ok(Store::new(&config))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database to the schema of this program
    Migrate {
        /// Take back the newest migration instead
        #[arg(long)]
        revert: bool,
    },
    /// Read chart files into the index
    ///
    /// A path is a library (a folder that holds `alpha` or `beta`), any folder or archive in one, or any other
    /// folder. Charts that are known are left as they are; a folder that changed updates its chartset. Files
    /// that cannot be indexed are named with the reason and nothing else is touched. Of several folders and archives
    /// that stand for one chartset, a folder is chosen before an archive, then the first by path; the others are named.
    Ingest {
        /// Libraries, folders and archives (.osz, .zip)
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write what became of every chartset and file as JSON lines
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// Decode every file, also in folders and archives that have not changed since they were last read
        #[arg(long)]
        full: bool,
        /// Read everything and store nothing: tells what would be refused, needs no database
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a chart or a chartset out of the index; it stays out when it is ingested again
    Remove {
        #[command(subcommand)]
        entry: Entry,
    },
    /// Take back a removal
    Restore {
        #[command(subcommand)]
        entry: Entry,
    },
    /// Bring the index of every Meilisearch node up to what PostgreSQL holds
    ///
    /// A node without an index gets one. Each node is on its own: one that fails holds up no other.
    Sync {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
        /// Go on for ever: apply each change as it comes, and try nodes that fail again and again
        #[arg(long)]
        follow: bool,
    },
    /// Build the index of every Meilisearch node anew, and put it in the place of the old one in one step
    ///
    /// Searches go on in the old one meanwhile. May be interrupted and run again at any moment.
    Rebuild {
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
    },
    /// Check that every ROX file decodes to its hash and every chartset matches its charts
    Verify {
        /// Check instead that every Meilisearch node holds what PostgreSQL shows, and nothing else
        #[arg(long)]
        search: bool,
        #[command(flatten)]
        meilisearch: MeilisearchArguments,
    },
}

/// What is removed or restored.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Entry {
    /// A chart, in every chartset that holds it
    Chart {
        /// Its note hash
        hash: NoteHash,
    },
    /// A chartset; its charts stay known where another chartset holds them
    Chartset {
        /// Its id
        id: ChartsetId,
    },
}
