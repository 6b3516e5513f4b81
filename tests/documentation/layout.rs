//! ARCHITECTURE.md has a line for each folder, and each Rust file begins with what it is for.

use std::collections::BTreeSet;

use super::{files, read};

/// The folders directly below these are listed as well. What is deeper belongs to a crate or to a tool.
const PARENTS: &[&str] =
    &["benchmarks", "crates", "docs", "k8s", "monitoring", "services", "tests", "tests/system"];

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

/// The folders of a file that ARCHITECTURE.md has to list: at the top level, and directly below a parent.
fn folders_of(file: &str) -> Vec<String> {
    let folders = file.match_indices('/').map(|(end, _)| &file[..end]);
    let is_listed =
        |folder: &&str| folder.rsplit_once('/').is_none_or(|(parent, _)| PARENTS.contains(&parent));
    folders.filter(is_listed).map(str::to_owned).collect()
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
