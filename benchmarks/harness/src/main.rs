//! Load tests: named scenarios against the service, side by side with what it is compared with.
//!
//! `benchmarks/README.md` describes how to run them and what they measure.

mod compare;
mod cpu;
mod generator;
mod report;
mod round;
mod scenario;
mod target;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};

use compare::{Setup, compare_all};
use cpu::Cores;
use round::Schedule;
use scenario::Scenario;
use target::{Catalogue, ServicePrograms};

/// Load tests of the service
#[derive(Debug, Parser)]
#[command(name = "load", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the service with nginx and others, side by side: requests per second and CPU time per request
    Compare(CompareArguments),
    /// Serve charts like a plain axum and sqlx handler, for comparisons
    #[command(hide = true)]
    PlainHandler {
        /// URL of the database
        #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
        database_url: String,
    },
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// Scenarios
    #[arg(required = true)]
    scenarios: Vec<Scenario>,
    /// Folder with the programs to measure, by default that of this program
    #[arg(long, env = "PROGRAMS", value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Charts in the catalogue, which is generated once for each size
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    charts: u64,
    /// Rounds of each target
    #[arg(long, default_value_t = 6, value_name = "N")]
    rounds: usize,
    /// Length of a round in seconds
    #[arg(long, default_value_t = 2, value_name = "S")]
    seconds: u64,
    /// Connections of the generator
    #[arg(long, default_value_t = 16, value_name = "N")]
    connections: usize,
    /// Count void rounds like others, on a machine that does other work
    #[arg(long)]
    allow_void: bool,
}

/// On one thread, so that the thread that is pinned starts all processes.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::select! {
        result = run(arguments.command) => result,
        // Returns, so that the servers are stopped.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::PlainHandler { database_url } => target::serve_plain_handler(&database_url).await,
        Command::Compare(arguments) => {
            let cores = Cores::divide()?;
            let programs = ServicePrograms::find(arguments.programs.as_deref())?;
            let catalogue = Catalogue::open(arguments.charts, &cores).await?;
            let schedule = Schedule {
                rounds: arguments.rounds,
                seconds: arguments.seconds,
                allow_void: arguments.allow_void,
            };
            let setup = Setup { catalogue, programs, cores, schedule, connections: arguments.connections };
            compare_all(&setup, &arguments.scenarios).await?;
            Ok(())
        }
    }
}

/// Shows progress on standard error.
#[expect(clippy::print_stderr, reason = "a program that shows its progress")]
fn progress(message: &str) {
    eprintln!("{message}");
}
