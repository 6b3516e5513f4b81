//! What runs in the browser. The tests need what `scripts/browser` installs.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails when its set-up does")]

mod note_hashes;

use std::process::Command;

use chart_index_tests::workspace_root;

/// Runs files of this folder with `node --test` and these variables, and fails if one of their tests does.
fn run_node_tests(files: &[&str], variables: &[(&str, &str)]) {
    let folder = workspace_root().join("tests/browser");
    let mut command = Command::new(workspace_root().join("scripts/browser"));
    command.arg("test").args(files.iter().map(|file| folder.join(file))).envs(variables.iter().copied());
    let status = command.status().expect("scripts/browser starts");
    assert!(status.success(), "{files:?} failed");
}
