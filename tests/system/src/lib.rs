//! The test harness of the system tests, beyond that of `chart_index_tests`: proxies, Prometheus, Varnish, S3,
//! a Docker engine for the services of docker-compose.yml, and load at a fixed rate.
//!
//! Every process that is started here is ended by the `Drop` of its value.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test harness panics if it cannot start something, and prints how long starts take"
)]

mod base;
mod compose;
mod documents;
mod engine;
mod haproxy;
pub mod network;
mod open_loop;
mod process;
mod prometheus;
mod s3;
pub mod varnish;

pub use base::Base;
pub use compose::{ComposeProject, Connection};
pub use documents::{code_blocks, inline_code, on_one_line, ping_as_operator, read};
pub use haproxy::{PrivateHaproxy, haproxy_program};
pub use open_loop::{Load, LoadOutcome, OpenLoop, Sample, Senders};
pub use process::Process;
pub use prometheus::{PrivatePrometheus, RUNBOOK_URL, Rule};
pub use s3::PrivateS3;
pub use varnish::PrivateVarnish;

use std::path::Path;
use std::process::Command;

/// Runs a command, asserts that it succeeds, and returns its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// Writes the programs of this build, without debug information, into a new folder.
pub fn strip_programs(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    for name in ["chart-index", "chart-indexer"] {
        run(Command::new("strip").arg("-o").arg(folder.join(name)).arg(chart_index_tests::program(name)));
    }
}
