//! Tests of `monitoring/`: the configuration, rules and alerts of Prometheus, the dashboards.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod dashboards;
mod delivery;
mod expressions;
mod loaded;
mod panel_data;
mod rules;
mod runbook;

use std::io::Write;
use std::process::{Command, Stdio};

use chart_index_tests::workspace_root;

/// Runs `promtool` at the root of the repository, and asserts that it succeeds. Returns its output.
fn promtool(arguments: &[&str]) -> String {
    promtool_with_input(arguments, &[])
}

/// Runs `promtool` with this standard input.
fn promtool_with_input(arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(workspace_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed: `scripts/servers install prometheus`");
    // It writes nothing before it has read everything.
    child.stdin.take().expect("a pipe").write_all(input).expect("promtool reads");
    let output = child.wait_with_output().expect("promtool ends");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}\n{text}");
    text
}

/// The paths of the files in a folder of the repository, sorted.
fn workspace_files(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(workspace_root().join(folder)).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name().into_string().expect("UTF-8"));
    let mut files: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
    assert!(!files.is_empty(), "{folder}");
    files.sort_unstable();
    files
}
