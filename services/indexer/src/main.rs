//! The program `chart-indexer`: ingests chart files and maintains database and search nodes.

mod backoff;
mod cache_invalidation;
mod cli;
mod fingerprint;
mod ingest;
mod input_files;
mod library;
mod removal;
mod report;
mod search;
mod song_folder;
mod verify;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use chart_index_telemetry::{Log, shutdown_signal};
use clap::Parser;

use crate::cache_invalidation::CacheInvalidator;
use crate::cli::{Cli, Command};
use crate::ingest::{Completion, IngestOptions};

/// The exit code after SIGINT or SIGTERM: that of shells for SIGINT.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let log = Log::start(&cli.logging);
    let run = run(cli).await;
    log.finish(run.as_ref().err().map(|error| format!("chart-indexer: {error:#}")));
    run.unwrap_or(ExitCode::FAILURE)
}

async fn run(cli: Cli) -> Result<ExitCode> {
    let connect = || cli.store.connect();
    let cache = || CacheInvalidator::new(&cli.redis);
    match cli.command {
        Command::Migrate { revert: false } => connect()?.migrate().await?,
        Command::Migrate { revert: true } => connect()?.revert_last().await?,
        Command::Ingest { paths, report, full, dry_run } => {
            let store = if dry_run { None } else { Some(connect()?) };
            let options = IngestOptions { paths, report, full };
            let completion = Box::pin(ingest::ingest(store, cache()?, options)).await?;
            if completion == Completion::Interrupted {
                writeln!(std::io::stderr(), "interrupted: all stored chartsets are complete")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
        Command::Remove { entry } => removal::remove(&connect()?, &cache()?, entry).await?,
        Command::Restore { entry } => removal::restore(&connect()?, &cache()?, entry).await?,
        Command::Sync { meilisearch, follow } => {
            return until_signalled(search::sync(&connect()?, search::writers(&meilisearch)?, follow)).await;
        }
        Command::Rebuild { meilisearch } => {
            return until_signalled(Box::pin(search::rebuild(&connect()?, &search::writers(&meilisearch)?)))
                .await;
        }
        Command::Verify { search: true, meilisearch } => {
            Box::pin(search::verify(&connect()?, &search::writers(&meilisearch)?)).await?;
        }
        Command::Verify { search: false, .. } => verify::verify(&connect()?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `work`, which may be cancelled at any await point, until it ends or SIGTERM or SIGINT is received.
async fn until_signalled(work: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    let signalled = shutdown_signal().context("cannot listen for signals")?;
    tokio::select! {
        result = work => result.map(|()| ExitCode::SUCCESS),
        () = signalled => {
            writeln!(std::io::stderr(), "interrupted: the next run continues from here")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
