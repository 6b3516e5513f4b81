//! `chart-index check`: reads the settings as `serve` does, connects to every server, and prints what it finds.

mod finding;
mod machine;
mod postgresql;
mod servers;

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use chart_index_telemetry::print;
use tokio::runtime::Runtime;
use tracing::Level;

use self::finding::{Finding, Findings, Subject};
use crate::arguments::CheckArguments;
use crate::{composition, error_message};

/// Clocks that differ by less make no difference: ages of changes are in seconds.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(2);

/// Checks everything, prints the findings on standard output, and returns the exit code.
pub(crate) fn run(arguments: &CheckArguments) -> ExitCode {
    let checked = Runtime::new().context("cannot start the async runtime").and_then(|runtime| {
        let findings = runtime.block_on(check(arguments))?;
        findings.print(arguments.json).context("cannot write to standard output")?;
        // Without waiting for blocking tasks, such as the resolution of a host name.
        runtime.shutdown_background();
        Ok(findings.exit_code())
    });
    checked.unwrap_or_else(|error| {
        print(Level::ERROR, error_message(&error));
        ExitCode::FAILURE
    })
}

/// Each server and folder is checked whatever is found of the others.
async fn check(arguments: &CheckArguments) -> anyhow::Result<Findings> {
    let serve = &arguments.serve;
    let mut findings = machine::check(arguments).await;
    let store = match composition::connect_store(serve) {
        Ok(store) => store,
        Err(error) => {
            findings.push(servers::OBJECTS.problem(format!("{error:#}")));
            serve.store.store()?
        }
    };
    findings.extend(postgresql::check(serve, &store).await);
    findings.extend(machine::check_exports(serve, &store).await);
    findings.extend(servers::check_redis(serve).await);
    findings.extend(servers::check_meilisearch(serve, &store).await);
    findings.extend(servers::check_objects(&store).await);
    store.close().await;
    Ok(findings)
}

/// Compares a clock, in Unix epoch milliseconds, with that of this machine.
fn check_clock(subject: Subject, clock_ms: i64) -> Finding {
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let there = Duration::from_millis(clock_ms.unsigned_abs());
    let difference = here.abs_diff(there);
    let text = format!("the clock differs by {} ms from that of this machine", difference.as_millis());
    if difference > MAX_CLOCK_DIFFERENCE { subject.warning(text) } else { subject.ok(text) }
}
