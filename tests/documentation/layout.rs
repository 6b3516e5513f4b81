//! ARCHITECTURE.md has a line for each folder, and each Rust file begins with what it is for.

use std::collections::BTreeSet;

use super::{files, read};

/// The folders directly below these are listed as well. What is deeper belongs to a crate or to a tool.
const PARENTS: &[&str] = &["benchmarks", "crates", "docs", "k8s", "monitoring", "services", "tests"];

#[test]
fn architecture_lists_every_folder() {
    let listed = listed_folders(&read("ARCHITECTURE.md"));
    let actual: BTreeSet<String> = files(&[]).iter().flat_map(|file| folders_of(file)).collect();
    assert!(actual.contains("crates/domain") && actual.contains("scripts"), "{actual:?}");
    let missing: Vec<_> = actual.difference(&listed).collect();
    let extra: Vec<_> = listed.difference(&actual).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nno such folder: {extra:#?}");
}

/// The examples of docs/snippets are excluded: tests include them in programs (`include!`), where `//!` is an
/// error.
#[test]
fn rust_files_begin_with_their_purpose() {
    let sources = files(&["*.rs", ":!docs/snippets"]);
    assert!(sources.len() > 500, "{}", sources.len());
    let without: Vec<_> = sources.iter().filter(|file| !read(file).starts_with("//! ")).collect();
    assert!(without.is_empty(), "{without:#?}");
}

/// The folders of a file that ARCHITECTURE.md has to list.
fn folders_of(file: &str) -> Vec<String> {
    let mut parts = file.split('/');
    let (Some(top), Some(second)) = (parts.next(), parts.next()) else { return Vec::new() };
    let mut folders = vec![top.to_owned()];
    if parts.next().is_some() && PARENTS.contains(&top) {
        folders.push(format!("{top}/{second}"));
    }
    folders
}

/// The first column of the table of the section "Folders".
fn listed_folders(document: &str) -> BTreeSet<String> {
    let section = document.split("\n## Folders\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
    let listed = rows.map(|(folder, contents)| {
        assert!(!contents.is_empty(), "{folder} is not described");
        folder.to_owned()
    });
    listed.collect()
}
