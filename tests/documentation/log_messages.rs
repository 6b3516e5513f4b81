//! docs/operations/monitoring.md lists every message of the log above the level debug.

use std::collections::BTreeSet;

use super::{files, read};

#[test]
fn every_log_message_is_documented() {
    let page = read("docs/operations/monitoring.md");
    let table = page
        .lines()
        .filter(|line| ["| info |", "| warn |", "| error |"].iter().any(|row| line.starts_with(row)));
    let documented: BTreeSet<String> = table
        .flat_map(|row| {
            let (level, messages) = row[2..].split_once('|').expect("two columns");
            let messages = messages.split('|').next().unwrap_or_default();
            messages.split('`').skip(1).step_by(2).map(move |message| format!("{}: {message}", level.trim()))
        })
        .collect();
    let sources = files(&[":(glob)crates/*/src/**/*.rs", ":(glob)services/*/src/**/*.rs"]);
    let logged: BTreeSet<String> = sources.iter().flat_map(|file| messages(&read(file))).collect();
    assert!(logged.len() > 10, "{logged:?}");
    let missing: Vec<_> = logged.difference(&documented).collect();
    let extra: Vec<_> = documented.difference(&logged).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nnot logged: {extra:#?}");
}

/// The messages of the macros of `tracing` in a file, each with its level: the last string literal of a call.
fn messages(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for level in ["info", "warn", "error"] {
        for call in code.split(&format!("tracing::{level}!(")).skip(1) {
            let arguments = call.split(");").next().unwrap_or_default();
            let message = arguments.rsplit('"').nth(1).expect("a message");
            found.push(format!("{level}: {message}"));
        }
    }
    found
}
