//! Fills a PostgreSQL database with a synthetic catalogue of any size.
//!
//! It stores chartsets as an ingest does, without reading files. `chart-indexer rebuild` then fills Meilisearch
//! from the database. Unless `--rox-files valid` is given, the ROX files are random bytes, so that
//! `chart-indexer verify` fails for such a catalogue.
#![expect(clippy::print_stderr, reason = "a program that reports its progress")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_benchmarks::catalogue::{CatalogueOptions, RoxFiles, fill};
use chart_index_store::{DatabaseUrl, Store, StoreConfig};
use clap::Parser;

const TIMEOUT: Duration = Duration::from_mins(1);

/// Fill an empty, migrated database with a synthetic catalogue, which depends on the options alone
#[derive(Debug, Parser)]
#[command(name = "generate-catalogue", version, about, max_term_width = 100)]
struct Arguments {
    /// Number of chartsets
    #[arg(long, default_value_t = 300_000, value_name = "N")]
    chartsets: u64,
    /// Number of charts, 1 to 20 per chartset
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    charts: u64,
    /// Seed of the random generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// What to store as ROX files
    #[arg(long, value_enum, default_value_t = RoxFiles::Random, value_name = "KIND")]
    rox_files: RoxFiles,
    /// Add to a database that already has charts
    #[arg(long)]
    add: bool,
    /// URL of the PostgreSQL database to fill
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: DatabaseUrl,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let options = CatalogueOptions::new(arguments.chartsets, arguments.charts, arguments.seed)?
        .with_rox_files(arguments.rox_files);
    let config = StoreConfig {
        acquire_timeout: TIMEOUT,
        statement_timeout: TIMEOUT,
        ..StoreConfig::new(arguments.database_url)
    };
    let store = Store::new(&config);
    store
        .check_schema()
        .await
        .context("database unavailable, or not migrated (run `chart-indexer migrate`)")?;
    let is_empty = store.stored_charts_after(None, 1).await?.is_empty();
    ensure!(is_empty || arguments.add, "the database already has charts; use --add to add to them");

    let start = Instant::now();
    fill(&store, options).await?;
    let (seconds, sets) = (start.elapsed().as_secs().max(1), options.chartsets());
    eprintln!(
        "{sets} chartsets, {} charts: {seconds} s, {} chartsets per second",
        options.charts(),
        sets / seconds
    );
    store.close().await;
    Ok(())
}
