//! Measures lookups, lists and memory while a catalogue grows, and the CPU time of each class of requests.
//!
//! ```text
//! [PROGRAMS=FOLDER] bench-growth [--chartsets 3000,10000,…] [--rounds 5] [--seconds 2] [--max-minutes 240] [--json FILE]
//! bench-growth --short
//! ```
//!
//! It starts private servers, and Meilisearch if that is on the PATH. The same database grows from each size to the next; it
//! has ten charts for three chartsets. Lookups of each size are measured by turns with a copy of the smallest size, so that
//! their ratio does not depend on the load of the machine. `PROGRAMS` is the folder of `chart-index` and `chart-indexer`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints its progress and its results"
)]

mod catalogue;
mod classes;
mod client;
mod lists;
mod lookups;
mod memory;
mod projection;
mod replica;
mod report;
mod requests;
mod wrk;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde::Serialize;

use crate::catalogue::{Catalogue, Database};
use crate::classes::ClassRow;
use crate::lists::ListRow;
use crate::lookups::LookupRow;
use crate::memory::{EntryMemory, RedisMemory, ReplicaMemory};
use crate::projection::{RateProjection, SizeProjection};

/// Measure lookups, lists and memory while a catalogue grows
#[derive(Debug, Parser)]
#[command(name = "bench-growth", version, about, max_term_width = 100)]
struct Arguments {
    /// Sizes in chartsets, ascending. There are ten charts for three chartsets
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_values_t = [3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    )]
    chartsets: Vec<u64>,
    /// Rounds of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
    /// Duration of a load
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    seconds: u32,
    /// Check that everything is measured: two tiny sizes, and each load once for a second
    #[arg(long, conflicts_with_all = ["chartsets", "rounds", "seconds"])]
    short: bool,
    /// Start no larger size if it would take longer than this in total
    #[arg(long, value_name = "MINUTES", default_value_t = 240)]
    max_minutes: u64,
    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How long and how often a load is measured.
#[derive(Debug, Clone, Copy)]
struct Effort {
    rounds: u32,
    seconds: u32,
    short: bool,
}

impl Effort {
    const SHORT: Self = Self { rounds: 1, seconds: 1, short: true };

    /// The duration of a load as long as this many others.
    const fn seconds_of(self, loads: u32) -> u32 {
        if self.short { self.seconds } else { self.seconds * loads }
    }

    /// This number of clients or requests, or a small part of it.
    const fn part_of(self, count: u32) -> u32 {
        if self.short { count / 50 } else { count }
    }
}

/// The sizes of the short form.
const SHORT_CHARTSETS: [u64; 2] = [150, 300];

/// The figures of a size.
#[derive(Debug, Serialize)]
struct Stage {
    chartsets: u64,
    database_bytes: u64,
    fill_seconds: f64,
    replica: ReplicaMemory,
    lookups: Vec<LookupRow>,
    lists: Vec<ListRow>,
}

/// All figures. What was not reached is missing.
#[derive(Debug, Default, Serialize)]
struct Report {
    machine: Vec<String>,
    stages: Vec<Stage>,
    classes: Vec<ClassRow>,
    entries: Option<EntryMemory>,
    redis: Option<RedisMemory>,
    rate: Option<RateProjection>,
    size: Vec<SizeProjection>,
    not_measured: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.chartsets.is_sorted_by(|a, b| a < b), "the sizes are not ascending");
    ensure!(arguments.rounds > 0 && arguments.seconds > 0, "a number is 0");
    let mut report = Report::default();
    // A run may take hours: what was measured before an error is reported, too.
    let measured = measure(&arguments, &mut report).await;
    println!("{}", report::markdown(&report)?);
    if let Some(file) = &arguments.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report)?).context("the report is not written")?;
    }
    measured
}

async fn measure(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let effort = Effort { rounds: arguments.rounds, seconds: arguments.seconds, short: false };
    let effort = if arguments.short { Effort::SHORT } else { effort };
    let (progress, mut catalogue) = (Progress(Instant::now()), Catalogue::start());
    report.machine = catalogue.machine();
    if catalogue.meilisearch.is_none() {
        report.not_measured.push("lists of Meilisearch, which is not on the PATH".into());
    }
    let database = sizes(&mut catalogue, arguments, effort, &progress, report).await?;

    let lists = report.stages.last().map_or(&[][..], |stage| &stage.lists);
    report.classes = classes::measure(&catalogue, &database, lists, effort).await?;
    report.rate = Some(projection::rate(&report.classes));
    progress.print("classes of requests");
    report.entries = Some(memory::entries(&catalogue, &database, effort).await?);
    report.redis = Some(memory::redis(&catalogue, &database, effort).await?);
    progress.print("memory");
    Ok(())
}

/// Measures each size, and returns the largest database.
async fn sizes(
    catalogue: &mut Catalogue,
    arguments: &Arguments,
    effort: Effort,
    progress: &Progress,
    report: &mut Report,
) -> Result<Database> {
    let (mut reference, mut largest): (Option<Database>, Option<Database>) = (None, None);
    for chartsets in if arguments.short { &SHORT_CHARTSETS[..] } else { &arguments.chartsets } {
        if progress.would_exceed(arguments.max_minutes, *chartsets, report.stages.last()) {
            report.not_measured.push(format!("{chartsets} chartsets, which would take too long"));
            continue;
        }
        let (database, filled) = catalogue.grow(*chartsets).await?;
        progress.print(&format!("{} charts in {chartsets} chartsets", database.hashes.len()));
        report.stages.push(stage(catalogue, &database, reference.as_ref(), filled, effort, progress).await?);
        report.size = projection::size(&report.stages);
        reference = reference.or_else(|| Some(database.copy()));
        largest = Some(database);
    }
    largest.context("no sizes")
}

async fn stage(
    catalogue: &Catalogue,
    database: &Database,
    reference: Option<&Database>,
    filled: Duration,
    effort: Effort,
    progress: &Progress,
) -> Result<Stage> {
    let lookups = lookups::measure(catalogue, database, reference, effort)?;
    progress.print("  lookups");
    let lists = lists::measure(catalogue, database, effort).await?;
    progress.print("  lists");
    let replica = memory::replica(catalogue, database, effort).await?;
    progress.print("  memory of a replica");
    let (chartsets, database_bytes) = (database.chartsets, database.bytes);
    Ok(Stage { chartsets, database_bytes, fill_seconds: filled.as_secs_f64(), replica, lookups, lists })
}

#[expect(clippy::cast_precision_loss, reason = "bytes and charts of a catalogue")]
impl Stage {
    fn charts(&self) -> f64 {
        self.replica.charts as f64
    }

    fn gigabytes(&self) -> f64 {
        self.database_bytes as f64 / 1e9
    }
}

/// The time since the start.
struct Progress(Instant);

impl Progress {
    fn print(&self, done: &str) {
        eprintln!("{:>6.0?} {done}", self.0.elapsed());
    }

    /// Whether filling up to this size, at the rate of the last stage, would end after the maximum.
    #[expect(clippy::cast_precision_loss, reason = "numbers of chartsets")]
    fn would_exceed(&self, max_minutes: u64, chartsets: u64, last: Option<&Stage>) -> bool {
        let Some(last) = last else { return false };
        // A rebuild of the index reads all chartsets, so the time is that of the whole catalogue.
        let fill_seconds = last.fill_seconds * chartsets as f64 / last.chartsets as f64;
        self.0.elapsed().as_secs_f64() + fill_seconds > max_minutes as f64 * 60.0
    }
}
