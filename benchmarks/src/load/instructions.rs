//! Instructions per request of the service, counted by callgrind: steadier than times, and without the kernel.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::compare::Setup;
use crate::scenario::Scenario;
use crate::target::{Role, ServiceForm};

/// Before counting, connections are opened.
const WARM_UP_SECONDS: u64 = 1;
/// callgrind makes the service about fifty times slower. Requests are sent for this time again and again, until
/// there are enough for the work in the background to matter little.
const SECONDS: u64 = 5;
const ENOUGH_REQUESTS: u64 = 5_000;
const MAX_RUNS: usize = 6;

/// Instructions of the service in user space, per request.
#[derive(Debug, Serialize)]
pub(crate) struct InstructionCount {
    pub(crate) scenario: String,
    pub(crate) target: &'static str,
    pub(crate) instructions: f64,
    pub(crate) requests: u64,
}

impl Setup {
    /// Counts the instructions of a scenario, with limits in memory and in Redis.
    pub(crate) async fn instructions(&self, scenario: Scenario) -> Result<Vec<InstructionCount>> {
        let mut counts = Vec::new();
        for local_window in [true, false] {
            let form =
                ServiceForm { local_window, small_cache: scenario.is_cold(), ..ServiceForm::default() };
            let count = self.count(scenario, form).await?;
            crate::progress(&format!(
                "{}, {}: {:.0} instructions per request ({} requests)",
                count.scenario, count.target, count.instructions, count.requests
            ));
            counts.push(count);
        }
        Ok(counts)
    }

    async fn count(&self, scenario: Scenario, form: ServiceForm) -> Result<InstructionCount> {
        let folder = tempfile::tempdir()?;
        let output = folder.path().join("callgrind");
        let arguments = ["valgrind", "--quiet", "--tool=callgrind"].map(str::to_owned);
        let file = format!("--callgrind-out-file={}", output.display());
        let form = ServiceForm { launcher: arguments.into_iter().chain([file]).collect(), ..form };
        let variant = self.service_variant(scenario, &form).await?;
        let process = variant.target().processes_of(Role::Server).first().copied().context("a process")?;
        variant.run(WARM_UP_SECONDS, 0).await?;
        control(process, "--zero")?;
        let mut requests = 0;
        for number in 1..=MAX_RUNS {
            let sent = variant.run(SECONDS, number).await?;
            ensure!(sent.requests > 0 && sent.failures == 0, "{sent:?}");
            requests += sent.requests;
            if requests >= ENOUGH_REQUESTS {
                break;
            }
        }
        control(process, "--dump")?;
        let total = total(&output.with_extension("1"))?;
        Ok(InstructionCount {
            scenario: scenario.name(),
            target: variant.name,
            instructions: crate::cpu::ratio(total, requests),
            requests,
        })
    }
}

/// Sends a command to a process under callgrind.
fn control(process: u32, command: &str) -> Result<()> {
    let output = Command::new("callgrind_control")
        .args([command, &process.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("valgrind is not installed: scripts/servers install valgrind")?;
    ensure!(output.status.success(), "callgrind_control: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The sum of instructions in a dump.
fn total(dump: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(dump).with_context(|| format!("no dump {}", dump.display()))?;
    sum(&text).with_context(|| format!("no sum in {}", dump.display()))
}

fn sum(dump: &str) -> Option<u64> {
    let line =
        dump.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")))?;
    line.split_whitespace().next()?.parse().ok()
}
