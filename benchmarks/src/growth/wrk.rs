//! Load by wrk, as many requests as a number of connections can send one after the other.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

const SCRIPT: &str = include_str!("wrk.lua");

/// A load of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrk {
    pub(crate) address: SocketAddr,
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
}

/// The figures of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) requests: u64,
    /// Responses with a status of 400 or more.
    errors: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
}

impl Wrk {
    /// Sends these requests in turn, each with its head complete. An error if a connection
    /// fails.
    pub(crate) fn run(self, requests: &[String]) -> Result<Run> {
        let (mut script, mut file) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
        script.write_all(SCRIPT.as_bytes())?;
        file.write_all(requests.join("\0").as_bytes())?;
        let output = Command::new("wrk")
            .args(["--threads", "1", "--connections", &self.connections.to_string()])
            .args(["--duration", &format!("{}s", self.seconds), "--timeout", "30s", "--script"])
            .arg(script.path())
            .arg(format!("http://{}", self.address))
            .env("REQUESTS", file.path())
            .stdin(Stdio::null())
            .output()
            .context("wrk does not start: scripts/servers install wrk")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.lines().find_map(|line| line.strip_prefix("figures "));
        let figures =
            figures.with_context(|| format!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
        Run::parse(figures)
    }
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run of seconds")]
    fn parse(figures: &str) -> Result<Self> {
        let figures: Vec<u64> = figures.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [requests, duration_us, errors, failures, p50_us] = figures[..] else {
            anyhow::bail!("wrk printed {figures:?}")
        };
        ensure!(requests > 0 && failures == 0, "{requests} responses, {failures} failures");
        let per_second = requests as f64 * 1e6 / duration_us as f64;
        Ok(Self { requests, errors, per_second, p50_us: p50_us as f64 })
    }

    /// The run, if each response is a success or a 304.
    pub(crate) fn successful(self) -> Result<Self> {
        ensure!(self.errors == 0, "{} of {} responses are errors", self.errors, self.requests);
        Ok(self)
    }

    /// The run, if nearly all requests were refused: a client at its limit is admitted now and then.
    pub(crate) fn refused(self) -> Result<Self> {
        ensure!(self.errors * 20 > self.requests * 19, "{} of {} were refused", self.errors, self.requests);
        Ok(self)
    }
}
