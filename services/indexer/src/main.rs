//! The program `chart-indexer`: reads chart files and fills the index.

mod announcements;
mod cli;
mod ingest;
mod library;
mod removal;
mod report;
mod song_folder;
mod verify;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::announcements::Announcer;
use crate::cli::{Cli, Command};
use crate::ingest::Completion;

/// The exit code of a program that was interrupted, as shells give it.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "chart-indexer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<ExitCode> {
    let connect = || cli.store.connect();
    let announcer = || Announcer::new(&cli.redis);
    match cli.command {
        Command::Migrate { revert: false } => connect()?.migrate().await?,
        Command::Migrate { revert: true } => connect()?.revert_last().await?,
        Command::Ingest { paths, report, dry_run } => {
            let store = if dry_run { None } else { Some(connect()?) };
            let completion = ingest::ingest(store.as_ref(), announcer()?, &paths, report.as_deref()).await?;
            if completion == Completion::Interrupted {
                writeln!(std::io::stderr(), "interrupted: what is stored is complete")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
        Command::Remove { entry } => removal::remove(&connect()?, &announcer()?, entry).await?,
        Command::Restore { entry } => removal::restore(&connect()?, &announcer()?, entry).await?,
        Command::Verify => verify::verify(&connect()?).await?,
    }
    Ok(ExitCode::SUCCESS)
}
