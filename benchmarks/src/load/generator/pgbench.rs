//! pgbench: as many statements as PostgreSQL can take over a fixed number of connections.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::process::Command;

use super::Sent;
use crate::cpu::Cores;

/// A generator of prepared statements.
#[derive(Debug)]
pub(crate) struct Pgbench {
    folder: TempDir,
    scripts: usize,
    url: String,
    connections: usize,
    threads: usize,
}

impl Pgbench {
    /// A generator that selects one of these statements at random for each transaction; each is prepared once
    /// per connection.
    pub(crate) fn new(statements: &[String], url: &str, connections: usize, cores: &Cores) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (number, statement) in statements.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.sql")), format!("{statement};\n"))?;
        }
        let threads = cores.generator().len().min(connections);
        Ok(Self { folder, scripts: statements.len(), url: url.to_owned(), connections, threads })
    }

    /// Runs statements for this time.
    pub(crate) async fn run(&self, seconds: u64) -> Result<Sent> {
        let mut command = Command::new("pgbench");
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={}", self.connections))
            .arg(format!("--jobs={}", self.threads))
            .arg(format!("--time={seconds}"))
            .args((0..self.scripts).map(|number| format!("--file={number}.sql")))
            .arg(&self.url)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output =
            command.output().await.context("pgbench is not installed: scripts/servers install postgres")?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "pgbench failed: {text}{}", String::from_utf8_lossy(&output.stderr));
        let requests = number_after(&text, "number of transactions actually processed: ")?;
        let per_second = number_after(&text, "tps = ")?;
        let failures = number_after(&text, "number of failed transactions: ")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts that pgbench prints"
        )]
        let (requests, failures) = (requests as u64, failures as u64);
        Ok(Sent { requests, seconds: crate::cpu::ratio(requests, 1) / per_second, bytes: 0, failures })
    }
}

/// The number that follows a label in the output.
fn number_after(text: &str, label: &str) -> Result<f64> {
    let rest = text.split(label).nth(1).with_context(|| format!("pgbench printed no \"{label}\": {text}"))?;
    let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    number.parse().with_context(|| format!("{label}{number}"))
}
