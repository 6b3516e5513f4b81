//! Load tests: named scenarios against the service, side by side with what it is compared with.
//!
//! `benchmarks/README.md` describes how to run them and what they measure.

mod compare;
mod cpu;
mod forms;
mod generator;
mod instructions;
mod latency;
mod report;
mod round;
mod scenario;
mod target;
mod verify;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::{Args, Parser, Subcommand};

use compare::Setup;
use cpu::Cores;
use forms::{Form, REPETITION_SECONDS};
use report::{Document, documents_in, write_page};
use round::Schedule;
use scenario::Scenario;
use target::{Catalogue, SearchNode, ServicePrograms};

/// Connections of wrk and pgbench.
const CONNECTIONS: usize = 16;

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
    Compare(RunArguments),
    /// Measure latencies at a fixed rate (open loop), and verify responses and limits
    Latency {
        #[command(flatten)]
        arguments: RunArguments,
        /// Requests per second, by default half of what the service can serve, and twice as many for overload
        #[arg(long, value_name = "N")]
        rate: Option<u32>,
    },
    /// Count the instructions of the service per request, by callgrind
    Instructions(RunArguments),
    /// Compare and measure all scenarios, and write the results as a JSON document and a page
    Run(AllArguments),
    /// Write a page about results: about one document, or about all documents of a folder over time
    Report {
        /// Documents or folders
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// The page to write
        #[arg(long, default_value = "target/load/report.html", value_name = "FILE")]
        page: PathBuf,
        /// Folder of the npm package uplot
        #[arg(long, env = "UPLOT", value_name = "DIR")]
        uplot: PathBuf,
    },
    /// Serve charts like a plain axum and sqlx handler, for comparisons
    #[command(hide = true)]
    PlainHandler {
        /// URL of the database
        #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
        database_url: String,
    },
}

#[derive(Debug, Args)]
struct RunArguments {
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
    #[arg(long, default_value_t = CONNECTIONS, value_name = "N")]
    connections: usize,
}

#[derive(Debug, Args)]
struct AllArguments {
    /// How long the run takes
    #[arg(long, value_enum, default_value_t = Form::Short)]
    form: Form,
    /// Folder with the programs to measure, by default that of this program
    #[arg(long, env = "PROGRAMS", value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Charts in the catalogue, by default those of the form
    #[arg(long, value_name = "N")]
    charts: Option<u64>,
    /// Folder for the document
    #[arg(long, default_value = "benchmarks/results", value_name = "DIR")]
    output: PathBuf,
    /// The page to write
    #[arg(long, default_value = "target/load/report.html", value_name = "FILE")]
    page: PathBuf,
    /// Folder of the npm package uplot; without it no page is written
    #[arg(long, env = "UPLOT", value_name = "DIR")]
    uplot: Option<PathBuf>,
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
            arguments.setup().await?.compare_all(&arguments.scenarios).await?;
            Ok(())
        }
        Command::Latency { arguments, rate } => {
            let results = arguments.setup().await?.latencies(&arguments.scenarios, rate).await?;
            latency::ensure_correct(&results)
        }
        Command::Instructions(arguments) => {
            arguments.setup().await?.instructions(&arguments.scenarios).await?;
            Ok(())
        }
        Command::Run(arguments) => arguments.run().await,
        Command::Report { results, page, uplot } => {
            let mut documents = Vec::new();
            for path in results {
                if path.is_dir() { documents.extend(documents_in(&path)?) } else { documents.push(path) }
            }
            write_page(&documents, &uplot, &page)?;
            progress(&format!("open file://{}", std::path::absolute(page)?.display()));
            Ok(())
        }
    }
}

impl AllArguments {
    async fn run(&self) -> Result<()> {
        let plan = self.form.plan();
        let measured = plan.measured.iter().flat_map(|&(scenarios, _)| scenarios);
        let arguments = RunArguments {
            scenarios: plan.compared.iter().chain(measured).copied().collect(),
            programs: self.programs.clone(),
            charts: self.charts.unwrap_or(plan.charts),
            rounds: plan.comparison.rounds,
            seconds: plan.comparison.seconds,
            connections: CONNECTIONS,
        };
        let mut setup = arguments.setup().await?;
        let mut document = Document::new(self.form.name(), &setup)?;
        // Written after each scenario: what a long run has measured is kept if it is interrupted, or a scenario fails.
        let mut path = document.write(&self.output)?;
        let mut failures = Vec::new();
        for &scenario in plan.compared {
            let results = setup.compare_all(&[scenario]).await;
            document.comparisons.extend(results_or_failure(results, &mut failures));
            path = document.write(&self.output)?;
        }
        for (scenarios, schedule) in plan.measured {
            setup.schedule = schedule;
            for &scenario in scenarios {
                let results = setup.latencies(&[scenario], None).await;
                document.latencies.extend(results_or_failure(results, &mut failures));
                path = document.write(&self.output)?;
            }
        }
        for &scenario in plan.counted {
            let results = setup.instructions(&[scenario]).await;
            document.instructions.extend(results_or_failure(results, &mut failures));
            path = document.write(&self.output)?;
        }
        progress(&format!("results: {}", path.display()));
        if let Some(uplot) = &self.uplot {
            write_page(&[path], uplot, &self.page)?;
            progress(&format!("open file://{}", std::path::absolute(&self.page)?.display()));
        }
        latency::ensure_correct(&document.latencies)?;
        ensure!(failures.is_empty(), "failed: {}", failures.join("; "));
        Ok(())
    }
}

/// The results of a scenario; none if it failed, which is shown and added to the failures.
fn results_or_failure<T>(results: Result<Vec<T>>, failures: &mut Vec<String>) -> Vec<T> {
    results.unwrap_or_else(|error| {
        let failure = format!("{error:#}");
        progress(&format!("FAILED: {failure}"));
        failures.push(failure);
        Vec::new()
    })
}

impl RunArguments {
    /// Starts what all scenarios share.
    async fn setup(&self) -> Result<Setup> {
        let cores = Cores::divide()?;
        let programs = ServicePrograms::find(self.programs.as_deref())?;
        let catalogue = Catalogue::open(self.charts, &cores).await?;
        let needs_search = self.scenarios.iter().any(|scenario| scenario.needs_search());
        let search_node = if needs_search { SearchNode::start(&programs, &catalogue, &cores)? } else { None };
        let schedule =
            Schedule { rounds: self.rounds, seconds: self.seconds, repetition_seconds: REPETITION_SECONDS };
        Ok(Setup { catalogue, programs, search_node, cores, schedule, connections: self.connections })
    }
}

/// Shows progress on standard error.
#[expect(clippy::print_stderr, reason = "a program that shows its progress")]
fn progress(message: &str) {
    eprintln!("{message}");
}
