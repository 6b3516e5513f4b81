//! Checks that the documentation matches the programs and the repository.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod api_examples;
mod citations;
mod decisions;
mod layout;
mod line_lengths;
mod links;
mod log_messages;
mod metrics;
mod note_hash;
mod settings;
mod tables;

use std::process::Command;

use chart_index_tests::workspace_root;

/// The text of a file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The lines of a file as one, without what begins a comment.
fn joined_lines(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', '-', '#']).trim());
    lines.collect::<Vec<_>>().join(" ")
}

/// Compares parts of a document with what they should be, or writes them.
fn check_or_update(path: &str, parts: &[(&str, String)]) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = parts.iter().fold(read(path), |text, (old, new)| text.replacen(old, new, 1));
        std::fs::write(workspace_root().join(path), updated).expect("the document is written");
        return;
    }
    for (documented, actual) in parts {
        assert_eq!(documented, actual, "{path} is out of date: UPDATE_DOCS=1 rewrites it");
    }
}

/// The contents of the fenced code blocks of a language, each with its line break at the end.
fn code_blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split_once("```\n").expect("the block ends").0).collect()
}

/// The files of the repository that match these patterns of git.
fn files(patterns: &[&str]) -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .args(patterns)
        .current_dir(workspace_root())
        .output()
        .expect("git is installed");
    let listed = String::from_utf8(output.stdout).expect("UTF-8");
    let names = listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned);
    // A file that is deleted and not committed is still listed.
    names.filter(|name| workspace_root().join(name).is_file()).collect()
}
