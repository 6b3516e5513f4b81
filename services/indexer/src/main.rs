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
/// Printed when `sync` is interrupted.
const SYNC_INTERRUPTED: &str = "the next run continues from the last checkpoint";
/// Printed when `rebuild` is interrupted.
const REBUILD_INTERRUPTED: &str =
    "the live index is complete; run rebuild again, it starts from the beginning";

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let log = Log::start(&cli.logging);
    let run = run(cli).await;
    log.finish(run.as_ref().err().map(|error| format!("chart-indexer: {error:#}")));
    run.unwrap_or(ExitCode::FAILURE)
}

async fn run(cli: Cli) -> Result<ExitCode> {
    let store = || cli.store.store();
    let cache = || CacheInvalidator::new(&cli.redis);
    match cli.command {
        Command::Migrate { revert: false } => store()?.migrate().await?,
        Command::Migrate { revert: true } => store()?.revert_last().await?,
        Command::Ingest { paths, report, full, dry_run } => {
            let store = if dry_run { None } else { Some(store()?) };
            let options = IngestOptions { paths, report, full };
            let completion = Box::pin(ingest::ingest(store, cache()?, options)).await?;
            if completion == Completion::Interrupted {
                writeln!(
                    std::io::stderr(),
                    "interrupted: the chartsets stored so far are complete; run the command again to continue"
                )?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
        Command::Remove { entry } => removal::remove(&store()?, &cache()?, entry).await?,
        Command::Restore { entry } => removal::restore(&store()?, &cache()?, entry).await?,
        Command::Sync { meilisearch, follow } => {
            let (store, writers) = (store()?, search::writers(&meilisearch)?);
            return until_signalled(search::sync(&store, writers, follow), SYNC_INTERRUPTED).await;
        }
        Command::Rebuild { meilisearch } => {
            let (store, writers) = (store()?, search::writers(&meilisearch)?);
            return until_signalled(Box::pin(search::rebuild(&store, &writers)), REBUILD_INTERRUPTED).await;
        }
        Command::Verify { search: true, meilisearch } => {
            Box::pin(search::verify(&store()?, &search::writers(&meilisearch)?)).await?;
        }
        Command::Verify { search: false, .. } => verify::verify(&store()?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `work`, which may be cancelled at any await point, until it ends, or until SIGTERM or SIGINT is received: then
/// prints `interrupted`.
async fn until_signalled(work: impl Future<Output = Result<()>>, interrupted: &str) -> Result<ExitCode> {
    let signalled = shutdown_signal().context("cannot listen for signals")?;
    tokio::select! {
        result = work => result.map(|()| ExitCode::SUCCESS),
        () = signalled => {
            writeln!(std::io::stderr(), "interrupted: {interrupted}")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
