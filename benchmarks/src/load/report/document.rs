//! The JSON document of a run: results, and what they depend on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use chart_index_tests::workspace_root;
use procfs::{CpuInfo, Current, Meminfo};
use serde::Serialize;
use time::UtcDateTime;

use crate::compare::{Comparison, Setup};
use crate::instructions::InstructionCount;
use crate::latency::LatencyResult;

/// A run of several scenarios.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    /// When the run started, in UTC: `2026-11-22 12:00`.
    date: String,
    /// Which form of the run: short or full.
    form: String,
    commit: String,
    machine: Machine,
    /// Versions of the programs.
    software: BTreeMap<&'static str, String>,
    charts: u64,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) latencies: Vec<LatencyResult>,
    pub(crate) instructions: Vec<InstructionCount>,
}

#[derive(Debug, Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    memory_bytes: u64,
    kernel: String,
    server_cores: Vec<usize>,
    generator_cores: Vec<usize>,
}

impl Document {
    /// A document of a run that starts now, without results.
    pub(crate) fn new(form: &str, setup: &Setup) -> Result<Self> {
        let now = UtcDateTime::now();
        Ok(Self {
            date: format!("{} {:02}:{:02}", now.date(), now.hour(), now.minute()),
            form: form.to_owned(),
            commit: commit(),
            machine: Machine::read(setup)?,
            software: software(setup),
            charts: setup.catalogue.charts(),
            comparisons: Vec::new(),
            latencies: Vec::new(),
            instructions: Vec::new(),
        })
    }

    /// Writes the document into a folder, under a name that begins with its date; returns its path.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let name = self.date.replace(' ', "-load-").replace(':', "");
        let path = folder.join(format!("{name}.json"));
        let json = serde_json::to_string(self)?;
        std::fs::write(&path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Machine {
    fn read(setup: &Setup) -> Result<Self> {
        let processors = CpuInfo::current()?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            processor: processors.model_name(0).unwrap_or("unknown").to_owned(),
            cores: processors.num_cores(),
            memory_bytes: Meminfo::current()?.mem_total,
            kernel: kernel.trim().to_owned(),
            server_cores: setup.cores.servers().to_vec(),
            generator_cores: setup.cores.generator().to_vec(),
        })
    }
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

fn software(setup: &Setup) -> BTreeMap<&'static str, String> {
    let mut versions = BTreeMap::from([
        ("chart-index", first_line(Command::new(&setup.programs.service).arg("--version"))),
        ("nginx", first_line(Command::new("/usr/sbin/nginx").arg("-v"))),
        ("wrk", first_line(Command::new("wrk").arg("-v"))),
        ("Redis", first_line(Command::new("redis-server").arg("--version"))),
        ("pgbench", first_line(Command::new("pgbench").arg("--version"))),
    ]);
    if let Some(node) = &setup.search_node {
        versions.insert("Meilisearch", node.version());
    }
    versions
}

/// What a program prints about itself; some print it on standard error.
fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return "not installed".to_owned() };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}
