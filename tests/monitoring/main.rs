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

/// The text of a file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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
