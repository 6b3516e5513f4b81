//! Fills a database with a catalogue of any size, made up with the skew of real ones.
//!
//! Straight into PostgreSQL, in the way an ingest stores what it has read. The search engine is filled from there
//! by `chart-indexer`, as after any ingest. `verify` of the ROX files is not for such a catalogue: see the library.
#![expect(clippy::print_stderr, reason = "a program that says how far it is")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_benchmarks::catalogue::{CatalogueOptions, drafts};
use chart_index_store::{DatabaseUrl, PutOutcome, Store, StoreConfig, StoreError};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

/// Sets stored at the same time: enough to keep PostgreSQL busy while one waits for its disk.
const WRITERS: usize = 8;
const PATIENCE: Duration = Duration::from_mins(1);

/// Fills an empty, migrated database with a made-up catalogue. The same seed and size give the same one.
#[derive(Debug, Parser)]
#[command(name = "generate-catalogue", version, about, max_term_width = 100)]
struct Arguments {
    /// Number of chartsets
    #[arg(long, default_value_t = 300_000, value_name = "N")]
    chartsets: u64,
    /// Number of charts: 1 to 20 for each chartset
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    charts: u64,
    /// Which of all catalogues of this size
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Add to a database that already holds charts
    #[arg(long)]
    add: bool,
    /// The PostgreSQL database to fill
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: DatabaseUrl,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let options = CatalogueOptions::new(arguments.chartsets, arguments.charts, arguments.seed)?;
    let config = StoreConfig {
        acquire_timeout: PATIENCE,
        statement_timeout: PATIENCE,
        ..StoreConfig::new(arguments.database_url)
    };
    let store = Store::new(&config);
    store.ping().await.context("the database cannot be used (is it migrated? `chart-indexer migrate`)")?;
    let is_empty = store.stored_charts_after(None, 1).await?.is_empty();
    ensure!(is_empty || arguments.add, "the database holds charts already: --add adds to them");

    let begun = Instant::now();
    fill(&store, options).await?;
    let (seconds, sets) = (begun.elapsed().as_secs().max(1), options.chartsets());
    eprintln!(
        "{sets} chartsets, {} charts: {seconds} s, {} chartsets a second",
        options.charts(),
        sets / seconds
    );
    store.close().await;
    Ok(())
}

/// Stores the catalogue. Each set is one transaction: stopping at any moment leaves complete sets, and the same
/// call with `--add` goes on from there.
async fn fill(store: &Store, options: CatalogueOptions) -> Result<()> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec}, {eta} left")?;
    let bar = ProgressBar::new(options.chartsets()).with_style(style);
    let mut writers: JoinSet<Result<PutOutcome, StoreError>> = JoinSet::new();
    for (draft, updated_at_ms) in drafts(options) {
        if writers.len() == WRITERS
            && let Some(stored) = writers.join_next().await
        {
            stored??;
            bar.inc(1);
        }
        let store = store.clone();
        writers.spawn(async move { store.put_chartset(&draft, updated_at_ms).await });
    }
    while let Some(stored) = writers.join_next().await {
        stored??;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
