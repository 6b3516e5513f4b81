//! wrk: as many requests as the target can take over a fixed number of connections.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::{NamedTempFile, TempDir};
use tokio::process::Command;

use crate::cpu::Cores;

/// The Lua script that makes the requests.
const SCRIPT: &str = include_str!("wrk.lua");

/// A generator with its script and its table of paths.
#[derive(Debug)]
pub(crate) struct Wrk {
    folder: TempDir,
    paths: NamedTempFile,
    headers: Vec<String>,
    clients: u32,
    connections: usize,
    threads: usize,
}

/// What wrk reports.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct WrkOutcome {
    /// Complete responses.
    pub(crate) requests: u64,
    /// How long the requests took.
    pub(crate) microseconds: u64,
    /// Bytes of heads and bodies.
    pub(crate) bytes: u64,
    /// Connections that failed.
    pub(crate) errors: u64,
    /// Responses with a status of 400 and above.
    pub(crate) statuses: u64,
    /// Responses that took longer than 2 s.
    pub(crate) timeouts: u64,
}

impl Wrk {
    /// A generator of requests for these paths in turn, with these headers, from random ones of `clients` addresses.
    pub(crate) fn new(
        paths: &[String],
        headers: &[(String, String)],
        clients: u32,
        connections: usize,
        cores: &Cores,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("wrk.lua"), SCRIPT)?;
        let mut file = NamedTempFile::new()?;
        for path in paths {
            writeln!(file, "{path}")?;
        }
        file.flush()?;
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let threads = cores.generator().len().min(connections);
        Ok(Self { folder, paths: file, headers, clients, connections, threads })
    }

    /// Sends requests to a target for this time. `seed` selects the addresses.
    pub(crate) async fn run(&self, address: SocketAddr, seconds: u64, seed: usize) -> Result<WrkOutcome> {
        let mut command = Command::new("wrk");
        command
            .args(["-t", &self.threads.to_string(), "-c", &self.connections.to_string()])
            .args(["-d", &format!("{seconds}s"), "-s"])
            .arg(self.folder.path().join("wrk.lua"))
            .arg(format!("http://{address}/"))
            .arg("--")
            .arg(self.paths.path())
            .args([self.clients.to_string(), seed.to_string()])
            .args(&self.headers)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.context("wrk is not installed: scripts/servers install wrk")?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr));
        let json = text.lines().rfind(|line| line.starts_with('{'));
        let json = json.with_context(|| format!("wrk printed no result: {text}"))?;
        let outcome = serde_json::from_str(json).with_context(|| format!("cannot read {json}"))?;
        Ok(outcome)
    }
}

impl WrkOutcome {
    /// Requests without a complete response of a status below 400.
    pub(crate) const fn failures(&self) -> u64 {
        self.errors + self.statuses + self.timeouts
    }
}
