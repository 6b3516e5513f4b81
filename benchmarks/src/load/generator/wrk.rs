//! wrk: as many requests as the target can take over a fixed number of connections.

use std::fmt;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::Command;

use super::Sent;
use crate::cpu::Cores;

/// The Lua script that makes the requests.
const SCRIPT: &str = include_str!("wrk.lua");

/// A generator with its script and its table of requests.
#[derive(Debug)]
pub(crate) struct Wrk {
    address: SocketAddr,
    folder: TempDir,
    clients: u32,
    connections: usize,
    threads: usize,
}

/// A GET request without `Host` and `X-Forwarded-For`.
#[derive(Debug, Clone)]
pub(crate) struct RequestLine<'a> {
    /// The path with its query string.
    pub(crate) path: &'a str,
    /// Headers.
    pub(crate) headers: &'a [(String, String)],
}

/// What the script prints at the end.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Summary {
    requests: u64,
    microseconds: u64,
    bytes: u64,
    /// Connections that failed.
    errors: u64,
    /// Responses with a status of 400 and above.
    statuses: u64,
    /// Responses that took longer than 2 s.
    timeouts: u64,
}

impl Wrk {
    /// A generator of these requests in turn, from random ones of `clients` addresses.
    pub(crate) fn new<'a>(
        address: SocketAddr,
        requests: impl Iterator<Item = RequestLine<'a>>,
        clients: u32,
        connections: usize,
        cores: &Cores,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("wrk.lua"), SCRIPT)?;
        let mut file = BufWriter::new(std::fs::File::create(folder.path().join("requests"))?);
        for request in requests {
            writeln!(file, "{request}")?;
        }
        file.flush()?;
        let threads = cores.generator().len().min(connections);
        Ok(Self { address, folder, clients, connections, threads })
    }

    /// Sends requests for this time. `number` selects the addresses and where in the table to begin.
    pub(crate) async fn run(&self, seconds: u64, number: usize) -> Result<Sent> {
        let mut command = Command::new("wrk");
        command
            .args(["-t", &self.threads.to_string(), "-c", &self.connections.to_string()])
            .args(["-d", &format!("{seconds}s"), "-s", "wrk.lua"])
            .arg(format!("http://{}/", self.address))
            .args(["--", "requests", &self.clients.to_string(), &number.to_string()])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.context("wrk is not installed: scripts/servers install wrk")?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr));
        let json = text.lines().rfind(|line| line.starts_with('{'));
        let json = json.with_context(|| format!("wrk printed no result: {text}"))?;
        let summary: Summary = serde_json::from_str(json).with_context(|| format!("cannot read {json}"))?;
        Ok(summary.sent())
    }
}

impl Summary {
    fn sent(self) -> Sent {
        Sent {
            requests: self.requests,
            seconds: crate::cpu::ratio(self.microseconds, 1_000_000),
            bytes: self.bytes,
            failures: self.errors + self.statuses + self.timeouts,
        }
    }
}

/// A line of the table, as wrk.lua reads it.
impl fmt::Display for RequestLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GET {} HTTP/1.1", self.path)?;
        for (name, value) in self.headers {
            write!(f, "\t{name}: {value}")?;
        }
        Ok(())
    }
}
