//! Tests of `monitoring/`: the configuration, rules and alerts of Prometheus, the dashboards.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod dashboards;
mod expressions;
mod rules;

use std::process::{Command, Stdio};

use chart_index_tests::workspace_root;

/// Runs `promtool` at the root of the repository, and asserts that it succeeds. Returns its output.
fn promtool(arguments: &[&str]) -> String {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(workspace_root())
        .stdin(Stdio::null())
        .output()
        .expect("promtool is installed: `scripts/servers install prometheus`");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}\n{text}");
    text
}
