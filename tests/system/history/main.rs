//! Checks the whole system with random histories: operations of two writers and faults of all servers, while
//! clients read. What clients received is checked against a model of the catalogue: a response is wrong only if
//! no state within its maximum age explains it.
//!
//! A fault is recorded from its beginning until everything that it named works again. A check excuses what one
//! fault excuses alone, until 5 s after its end; faults that affect no response excuse nothing. A busy machine
//! acts like a fault: checks allow what the metrics and durations of the responses show, and no more. No
//! command touches some of the charts, which must be in every response, since during an outage almost
//! everything else is explained by an earlier state.
//!
//! Needs root and network namespaces. Uses the `meilisearch` on the PATH, if there is one.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it found; its actors are threads"
)]

mod bucket;
mod checks;
mod clients;
mod ending;
mod hash_filter;
mod history;
mod lists;
mod mirror;
mod model;
mod names;
mod operator;
mod plan;
mod planted;
mod postgres;
mod process;
mod report;
mod system;
mod writers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chart_index_tests::PrivateMeilisearch;
use clap::Parser;

use crate::history::Options;

/// Runs random histories over the whole system and checks them
#[derive(Debug, Parser)]
#[command(name = "history")]
struct Arguments {
    /// Seed of the first history; the following ones have the following seeds. By default the time
    #[arg(long)]
    seed: Option<u64>,
    /// Runs histories for this time, at least one
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Length of a history in seconds, without its start and end
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Instead, plants each fault whose name contains this text, and runs histories until one finds it
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    planted: Option<String>,
    /// Writes the logs of all processes into a folder of each seed below this folder
    #[arg(long)]
    logs: Option<PathBuf>,
    /// Do not look for a shorter history that fails as well
    #[arg(long)]
    no_shrink: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let first = arguments.seed.unwrap_or_else(seed_of_now);
    let length = Duration::from_secs(arguments.seconds);
    let options = Options { seed: first, length, logs: arguments.logs.clone(), programs: None };
    if let Some(name) = &arguments.planted {
        return if planted::run(&options, name) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let start = Instant::now();
    let mut failed = Vec::new();
    for seed in first.. {
        let options = Options { seed, ..options.clone() };
        if !run(&options, !arguments.no_shrink) {
            failed.push(seed);
        }
        if start.elapsed() >= Duration::from_mins(arguments.minutes) {
            break;
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}

fn seed_of_now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// Runs a history and reports it. Returns whether no check is violated.
fn run(options: &Options, shrink: bool) -> bool {
    let steps = plan::generate(options.seed, options.length, PrivateMeilisearch::program().is_some());
    let history = history::run(options, &steps);
    let violations = checks::check(&history);
    report::print(options, &history, &violations);
    if let Some(folder) = &options.logs {
        report::write_responses(&folder.join(options.seed.to_string()), &history);
    }
    let violated = report::violated(&violations);
    if shrink && !violated.is_empty() {
        let performed = history.log.performed.iter().map(|index| steps[*index].clone());
        report::shrink(options, performed.collect(), &violated);
    }
    violated.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed of a history that kills and restores PostgreSQL, also without Meilisearch, and has objects.
    const SEED: u64 = 1955;

    /// `name`, or a default.
    fn setting(name: &str, default: u64) -> u64 {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    }

    fn options(seed: u64, seconds: u64) -> Options {
        Options { seed, length: Duration::from_secs(seconds), logs: None, programs: None }
    }

    #[test]
    #[ignore = "needs root and network namespaces: make test-system"]
    fn history_has_no_violations() {
        assert!(run(&options(setting("HISTORY_SEED", SEED), 45), false));
    }

    #[test]
    #[ignore = "long: half an hour"]
    fn long_histories_have_no_violations() {
        let (first, minutes) = (setting("HISTORY_SEED", seed_of_now()), setting("HISTORY_MINUTES", 30));
        let start = Instant::now();
        let seeds = (first..).take_while(|_| start.elapsed() < Duration::from_mins(minutes));
        let failed: Vec<_> = seeds.filter(|seed| !run(&options(*seed, 60), true)).collect();
        assert!(failed.is_empty(), "seeds {failed:?}");
    }

    #[test]
    #[ignore = "long: builds the programs with each fault, an hour"]
    fn long_planted_faults_are_found() {
        assert!(planted::run(&options(setting("HISTORY_SEED", seed_of_now()), 60), ""));
    }
}
