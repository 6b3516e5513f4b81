//! Load tests: named scenarios against the service, side by side with nginx.
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
use forms::{Form, Measurement, Plan, REPETITION_SECONDS, Step};
use report::Report;
use round::Schedule;
use scenario::Scenario;
use target::{Catalogue, SearchNode, ServicePrograms};

/// Load tests of the service
#[derive(Debug, Parser)]
#[command(name = "load", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the service with nginx, side by side: requests per second and CPU time per request
    Compare(ScenarioArguments),
    /// Measure latencies at a fixed rate (open loop), and verify responses and limits
    Latency {
        #[command(flatten)]
        arguments: ScenarioArguments,
        /// Requests per second, by default half of what the service can serve, and twice as many for overload
        #[arg(long, value_name = "N")]
        rate: Option<u32>,
    },
    /// Count the instructions of the service per request, by callgrind
    Instructions(ScenarioArguments),
    /// Compare and measure all scenarios
    Run {
        /// How long the run takes
        #[arg(long, value_enum, default_value_t = Form::Short)]
        form: Form,
        #[command(flatten)]
        common: CommonArguments,
    },
}

#[derive(Debug, Args)]
struct ScenarioArguments {
    /// Scenarios
    #[arg(required = true)]
    scenarios: Vec<Scenario>,
    /// Rounds of each target
    #[arg(long, default_value_t = 6, value_name = "N")]
    rounds: usize,
    /// Length of a round in seconds
    #[arg(long, default_value_t = 2, value_name = "S")]
    seconds: u64,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct CommonArguments {
    /// Folder with the programs to measure, by default that of this program
    #[arg(long, env = "PROGRAMS", value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Charts in the catalogue, which is generated once for each size; by default 10,000, or those of the form
    #[arg(long, value_name = "N")]
    charts: Option<u64>,
    /// Connections of wrk
    #[arg(long, default_value_t = 16, value_name = "N")]
    connections: usize,
    /// Folder for the tables in Markdown and all rounds in JSON
    #[arg(long, default_value = "target/load", value_name = "DIR")]
    output: PathBuf,
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
    let (plan, common) = match command {
        Command::Compare(arguments) => arguments.plan(Measurement::Comparison),
        Command::Latency { arguments, rate } => {
            arguments.plan(|schedule| Measurement::Latency { schedule, rate })
        }
        Command::Instructions(arguments) => arguments.plan(|_| Measurement::Instructions),
        Command::Run { form, common } => (form.plan(), common),
    };
    common.run(&plan).await
}

impl ScenarioArguments {
    /// One measurement of each scenario.
    fn plan(self, measurement: impl Fn(Schedule) -> Measurement) -> (Plan, CommonArguments) {
        let Self { scenarios, rounds, seconds, common } = self;
        let schedule = Schedule { rounds, seconds, repetition_seconds: REPETITION_SECONDS };
        let step = |scenario| Step { scenario, measurement: measurement(schedule) };
        (Plan { charts: 10_000, steps: scenarios.into_iter().map(step).collect() }, common)
    }
}

impl CommonArguments {
    async fn run(&self, plan: &Plan) -> Result<()> {
        let setup = self.setup(plan).await?;
        let mut report = Report::new(&setup)?;
        let mut failures = Vec::new();
        for step in &plan.steps {
            if let Err(error) = measure(&setup, step, &mut report).await {
                let failure = format!("{}: {error:#}", step.scenario.name());
                progress(&format!("FAILED: {failure}"));
                failures.push(failure);
            }
            // What a long run has measured is there if it is interrupted.
            let path = report.write(&self.output)?;
            progress(&format!("results: {}", path.display()));
        }
        ensure!(failures.is_empty(), "failed: {}", failures.join("; "));
        Ok(())
    }

    /// Starts what all scenarios share.
    async fn setup(&self, plan: &Plan) -> Result<Setup> {
        let cores = Cores::divide()?;
        let programs = ServicePrograms::find(self.programs.as_deref())?;
        let catalogue = Catalogue::open(self.charts.unwrap_or(plan.charts), &cores).await?;
        let needs_search = plan.steps.iter().any(|step| step.scenario.needs_search());
        let search_node = if needs_search { SearchNode::start(&programs, &catalogue, &cores)? } else { None };
        Ok(Setup { catalogue, programs, search_node, cores, connections: self.connections })
    }
}

async fn measure(setup: &Setup, step: &Step, report: &mut Report) -> Result<()> {
    let scenario = step.scenario;
    match step.measurement {
        Measurement::Comparison(_) if scenario.needs_search() && setup.search_node.is_none() => {
            progress(&format!("SKIPPED: {}: meilisearch is not on the PATH", scenario.name()));
            Ok(())
        }
        Measurement::Comparison(schedule) => {
            let comparison = setup.compare(scenario, schedule).await?;
            progress(&format!("\n{}", report::comparison_table(&comparison)));
            report.comparisons.push(comparison);
            Ok(())
        }
        Measurement::Latency { schedule, rate } => {
            let result = setup.latency(scenario, schedule, rate).await?;
            progress(&format!("\n{}", report::latency_table(&result)));
            let checked = result.ensure_correct();
            report.latencies.push(result);
            checked
        }
        Measurement::Instructions => {
            report.instructions.extend(setup.instructions(scenario).await?);
            Ok(())
        }
    }
}

/// Shows progress on standard error.
#[expect(clippy::print_stderr, reason = "a program that shows its progress")]
fn progress(message: &str) {
    eprintln!("{message}");
}
