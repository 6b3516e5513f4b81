//! The results of a run: tables in Markdown, and all rounds in JSON.

mod tables;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use chart_index_tests::workspace_root;
use procfs::{CpuInfo, Current, Meminfo};
use serde::Serialize;
use time::UtcDateTime;

pub(crate) use tables::{comparison_table, latency_table};

use crate::compare::{Comparison, Setup};
use crate::instructions::InstructionCount;
use crate::latency::LatencyResult;

const LEGEND: &str = "\
If all rounds of a target are void, its figures are those of the void rounds: requests per second are then a
lower bound (`>=`), and latencies are marked with `void`. \"void\" also counts the void rounds. \":1\" is the ratio
to the first target.\n";

/// The results of a run, and what they depend on.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// When the run started, in UTC: `2026-11-22 12:00`.
    date: String,
    command: String,
    commit: String,
    charts: u64,
    /// The processor, the memory and the kernel, and which cores were used.
    machine: String,
    /// Names and versions of the programs.
    software: String,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) latencies: Vec<LatencyResult>,
    pub(crate) instructions: Vec<InstructionCount>,
}

impl Report {
    /// A report of a run that starts now, without results.
    pub(crate) fn new(setup: &Setup) -> Result<Self> {
        let now = UtcDateTime::now();
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Ok(Self {
            date: format!("{} {:02}:{:02}", now.date(), now.hour(), now.minute()),
            command: format!("load {}", arguments.join(" ")),
            commit: commit(),
            charts: setup.catalogue.charts(),
            machine: machine(setup)?,
            software: software(setup),
            comparisons: Vec::new(),
            latencies: Vec::new(),
            instructions: Vec::new(),
        })
    }

    /// Writes the report into a folder, as Markdown and with all rounds as JSON, under names that begin with
    /// its date. Returns the path of the Markdown.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(self.date.replace(' ', "-load-").replace(':', "")).with_extension("md");
        for (path, text) in [
            (path.with_extension("json"), serde_json::to_string(self)? + "\n"),
            (path.clone(), self.markdown()),
        ] {
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(path)
    }

    fn markdown(&self) -> String {
        let Self { date, command, commit, charts, machine, software, .. } = self;
        let mut text = format!(
            "# Load test, {date} UTC\n\n`{command}`, commit {commit}, {charts} charts.\n\n{machine}.\n{software}.\n\n{LEGEND}"
        );
        let sections = [
            ("Requests per second and CPU time", self.comparisons.iter().map(comparison_table).collect()),
            (
                "Latencies\n\nFrom the intended start of each request.",
                self.latencies.iter().map(latency_table).collect(),
            ),
            ("Instructions per request of the service", tables::instruction_table(&self.instructions)),
        ];
        for (heading, tables) in sections {
            let tables: Vec<String> = tables;
            if !tables.is_empty() {
                let _ = write!(text, "\n## {heading}\n\n{}", tables.join("\n"));
            }
        }
        text
    }
}

fn machine(setup: &Setup) -> Result<String> {
    let processors = CpuInfo::current()?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(format!(
        "{}, {} cores, {} GiB, Linux {}; servers on the cores {:?}, generator on {:?}",
        processors.model_name(0).unwrap_or("unknown"),
        processors.num_cores(),
        Meminfo::current()?.mem_total.div_ceil(1 << 30),
        kernel.trim(),
        setup.cores.servers(),
        setup.cores.generator(),
    ))
}

/// The commit of the checkout, marked if files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(workspace_root()).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    if changed { format!("{commit} with changes") } else { commit }
}

fn software(setup: &Setup) -> String {
    let mut programs = vec![
        ("chart-index", printed_version(Command::new(&setup.programs.service).arg("--version"))),
        ("nginx", printed_version(Command::new("/usr/sbin/nginx").arg("-v"))),
        ("PostgreSQL", printed_version(Command::new("psql").arg("--version"))),
        ("Redis", printed_version(Command::new("redis-server").arg("--version"))),
        ("wrk", printed_version(Command::new("wrk").arg("-v"))),
    ];
    programs.extend(setup.search_node.as_ref().map(|node| ("Meilisearch", version(&node.version()))));
    let programs: Vec<String> =
        programs.into_iter().map(|(name, version)| format!("{name} {version}")).collect();
    programs.join(", ")
}

/// The version that a program prints; some print it on standard error.
fn printed_version(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return "not installed".to_owned() };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    version(&String::from_utf8_lossy(&text))
}

/// The first version number in a text.
fn version(text: &str) -> String {
    let mut parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let version = parts.find(|part| part.contains('.') && part.starts_with(|c: char| c.is_ascii_digit()));
    version.unwrap_or("of an unknown version").to_owned()
}
