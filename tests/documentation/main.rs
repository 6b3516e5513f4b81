//! Checks that the documentation matches the programs and the repository.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod api_examples;
mod errors;
mod links;
mod note_hash;
mod settings;

use chart_index_tests::workspace_root;

/// The text of a file of the repository.
fn read(path: &str) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The contents of the fenced code blocks of a language, each with its line break at the end.
fn code_blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split_once("```\n").expect("the block ends").0).collect()
}
