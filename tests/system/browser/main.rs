//! The pages in Chromium, and what runs in the browser. The tests need what `scripts/browser` installs.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails when its set-up does")]

mod control;
mod hostile_sets;
mod site;

use std::process::Command;

use chart_index_tests::workspace_root;

use crate::control::Control;
use crate::site::Site;

/// Runs files of this folder with `node --test` and these variables, and fails if one of their tests does.
/// `BROWSER_TESTS` selects files.
fn run_node_tests(files: &[&str], variables: &[(&str, &str)]) {
    let selected = std::env::var("BROWSER_TESTS").unwrap_or_default();
    let is_selected =
        |file: &&str| selected.is_empty() || selected.split_whitespace().any(|name| name == *file);
    let files: Vec<&str> = files.iter().copied().filter(is_selected).collect();
    if files.is_empty() {
        return;
    }
    let folder = workspace_root().join("tests/system/browser");
    let mut command = Command::new(workspace_root().join("scripts/browser"));
    command.arg("test").args(files.iter().map(|file| folder.join(file))).envs(variables.iter().copied());
    let status = command.status().expect("scripts/browser starts");
    assert!(status.success(), "{files:?} failed");
}

/// The pages, every journey, accessibility, markup and budgets; last, what users see while servers fail.
#[test]
#[ignore = "needs Chromium: make test-system"]
fn pages_pass_in_a_browser() {
    let site = Site::start();
    let control = Control::start(site.servers());
    let description = site.description(control.address());
    let variables = [("SITE", description.as_str())];
    run_node_tests(
        &[
            "limits.mjs",
            "journeys.mjs",
            "accessibility.mjs",
            "preview.mjs",
            "peek.mjs",
            "identify.mjs",
            "docs.mjs",
        ],
        &variables,
    );
    run_node_tests(&["budgets.mjs"], &variables);
    run_node_tests(&["outages.mjs"], &variables);
}

/// Every state in every theme and width, and five runs of Lighthouse.
#[test]
#[ignore = "takes minutes: make test-full"]
fn long_pages_pass_in_all_themes_and_lighthouse() {
    let site = Site::start();
    let control = Control::start(site.servers());
    let description = site.description(control.address());
    let variables = [("SITE", description.as_str()), ("LONG", "1")];
    run_node_tests(&["accessibility.mjs"], &variables);
    run_node_tests(&["lighthouse.mjs"], &variables);
}
