//! The program `chart-indexer`: ingests chart files and maintains database and search nodes.

mod archive_folders;
mod backfill;
mod backoff;
mod cli;
mod clock;
mod export;
mod filter;
mod fingerprint;
mod folder_lock;
mod follow;
mod import;
mod ingest;
mod input_files;
mod instance;
mod library;
mod metrics;
mod metrics_listener;
mod mirror;
mod objects;
mod percentiles;
mod progress;
mod purge;
mod removal;
mod replace_rox;
mod report;
mod search;
mod signature;
mod song_folder;
mod status;
mod stdout;
mod verify;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use chart_index_store::Store;
use chart_index_telemetry::{Telemetry, print, shutdown_signal};
use tokio::runtime::Runtime;
use tracing::Level;

use crate::cli::{Cli, Command, ObjectsCommand, RemovalsCommand};
use crate::export::Renewal;
use crate::ingest::Completion;
use crate::purge::Purger;

/// The exit code after SIGINT or SIGTERM: that of shells for SIGINT.
const INTERRUPTED: u8 = 130;
/// Printed when `backfill` is interrupted.
const BACKFILL_INTERRUPTED: &str =
    "the charts written so far are complete; run the command again to continue";
/// Printed when `export` is interrupted.
const EXPORT_INTERRUPTED: &str = "no export was written";
/// Printed when `import` is interrupted.
const IMPORT_INTERRUPTED: &str =
    "the chartsets imported so far are complete; run the command again to continue";
/// Printed when `sync`, `follow` or `mirror` is interrupted.
const SYNC_INTERRUPTED: &str = "the next run continues where this one ended";
/// Printed when `ingest` is interrupted.
const INGEST_INTERRUPTED: &str =
    "the chartsets stored so far are complete; run the command again to continue";
/// Printed when `objects migrate` or `objects gc` is interrupted.
const OBJECTS_INTERRUPTED: &str = "run the command again to continue";
/// Printed when `rebuild` is interrupted.
const REBUILD_INTERRUPTED: &str =
    "the live index is complete; run rebuild again, it starts from the beginning";

fn main() -> ExitCode {
    let cli = chart_index_cli::parse(Cli::check).unwrap_or_else(|error| chart_index_telemetry::exit(&error));
    let started = Telemetry::start("chart-indexer", env!("CARGO_PKG_VERSION"), &cli.logging, &cli.otlp);
    let telemetry = match started {
        Ok(telemetry) => telemetry,
        Err(error) => {
            print(Level::ERROR, error_message(&error.into()));
            return ExitCode::FAILURE;
        }
    };
    let run = run_in_runtime(cli, &telemetry);
    telemetry.finish(run.as_ref().err().map(error_message));
    run.unwrap_or(ExitCode::FAILURE)
}

/// Runs the command in an async runtime. The exporters of the telemetry must not run in it.
fn run_in_runtime(cli: Cli, telemetry: &Telemetry) -> Result<ExitCode> {
    let runtime = Runtime::new().context("cannot start the async runtime")?;
    telemetry.observe_runtime("background", [runtime.handle()]);
    runtime.block_on(run(cli, telemetry))
}

/// The error with its causes, on one line.
fn error_message(error: &anyhow::Error) -> String {
    format!("chart-indexer: {error:#}")
}

async fn run(cli: Cli, telemetry: &Telemetry) -> Result<ExitCode> {
    // `follow` has to find an index on every node first.
    let is_ready = Arc::new(AtomicBool::new(!cli.command.follows()));
    let _metrics_listener = metrics_listener::start(&cli.command, &is_ready).await?;
    let sampler = telemetry.sampler();
    let store = || cli.store.store();
    // For commands that fold text.
    let checked_store = async || {
        let store = store()?;
        let checked = store.check_schema().await;
        checked.context("cannot use the database")?;
        anyhow::Ok(store)
    };
    match cli.command {
        Command::Migrate { revert: false } => store()?.migrate().await?,
        Command::Migrate { revert: true } => store()?.revert_last().await?,
        Command::Ingest { options, dry_run, .. } => {
            let store = if dry_run { None } else { Some(checked_store().await?) };
            let completion = Box::pin(ingest::ingest(store, options, sampler)).await?;
            if completion == Completion::Interrupted {
                print(Level::WARN, format_args!("interrupted: {INGEST_INTERRUPTED}"));
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
        Command::Remove(arguments) => removal::remove(&store()?, arguments).await?,
        Command::Removals { command: RemovalsCommand::Export } => removal::export(&store()?).await?,
        Command::ReplaceRox { hash, from } => replace_rox::replace_rox(&store()?, hash, &from).await?,
        Command::Restore { entry } => removal::restore(&store()?, entry).await?,
        Command::Follow { meilisearch, purge, renewal, .. } => {
            let (store, writers, purger) = (store()?, search::writers(&meilisearch)?, Purger::new(purge)?);
            let renewal = Renewal::new(store.clone(), *renewal);
            let work = follow::follow(&store, writers, purger, renewal, sampler, is_ready);
            return until_signalled(work, SYNC_INTERRUPTED, None).await;
        }
        Command::Sync { meilisearch, .. } => {
            let (store, writers) = (store()?, search::writers(&meilisearch)?);
            return until_signalled(search::sync(&store, writers, sampler), SYNC_INTERRUPTED, None).await;
        }
        Command::Rebuild { meilisearch, .. } => {
            let (store, writers) = (store()?, search::writers(&meilisearch)?);
            return until_signalled(Box::pin(search::rebuild(&store, &writers)), REBUILD_INTERRUPTED, None)
                .await;
        }
        Command::Backfill { full } => {
            let store = store()?;
            let work = backfill::backfill(&store, full);
            return until_signalled(work, BACKFILL_INTERRUPTED, Some(&store)).await;
        }
        Command::Export(options) => {
            let store = store()?;
            let work = async { export::export(&store, &options).await.map(drop) };
            return until_signalled(work, EXPORT_INTERRUPTED, None).await;
        }
        Command::Import { export, verify_keys } => {
            let store = checked_store().await?;
            let work = Box::pin(import::import(&store, &export, verify_keys));
            return until_signalled(work, IMPORT_INTERRUPTED, Some(&store)).await;
        }
        Command::Mirror { options, .. } => {
            let store = store()?;
            let work = Box::pin(mirror::mirror(&store, &options));
            return until_signalled(work, SYNC_INTERRUPTED, None).await;
        }
        Command::Status(arguments) => status::status(&checked_store().await?, &arguments).await?,
        Command::Filter => filter::filter(&store()?).await?,
        Command::Objects { command } => {
            let store = store()?;
            let work = async {
                match command {
                    ObjectsCommand::Migrate { to_postgres } => objects::migrate(&store, to_postgres).await,
                    ObjectsCommand::Gc { grace } => objects::gc(&store, grace).await,
                }
            };
            return until_signalled(work, OBJECTS_INTERRUPTED, None).await;
        }
        Command::Verify { search: true, meilisearch } => {
            Box::pin(search::verify(&store()?, &search::writers(&meilisearch)?)).await?;
        }
        Command::Verify { search: false, .. } => verify::verify(&store()?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `work`, which may be cancelled at any await point, until it ends, or until SIGTERM or SIGINT is
/// received: then prints `interrupted`, and completes what it has written to the store, if it does.
async fn until_signalled(
    work: impl Future<Output = Result<()>>,
    interrupted: &str,
    written_to: Option<&Store>,
) -> Result<ExitCode> {
    let signalled = shutdown_signal().context("cannot listen for signals")?;
    tokio::select! {
        result = work => return result.map(|()| ExitCode::SUCCESS),
        () = signalled => print(Level::WARN, format_args!("interrupted: {interrupted}")),
    }
    if let Some(store) = written_to {
        filter::build_after_interruption(store).await;
    }
    Ok(ExitCode::from(INTERRUPTED))
}
