//! ARCHITECTURE.md has a line for each crate and service, and each Rust file begins with what it is for.

use std::collections::BTreeSet;

use super::{files, read};

#[test]
fn architecture_lists_every_crate() {
    let listed = listed_crates(&read("ARCHITECTURE.md"));
    let manifests = files(&["clients/*/Cargo.toml", "crates/*/Cargo.toml", "services/*/Cargo.toml"]);
    let folders = manifests.iter().filter_map(|file| file.strip_suffix("/Cargo.toml"));
    // Deeper ones are no members of the workspace, such as fuzz targets.
    let actual: BTreeSet<String> =
        folders.filter(|folder| folder.matches('/').count() == 1).map(str::to_owned).collect();
    assert!(actual.contains("crates/domain") && actual.contains("services/server"), "{actual:?}");
    let missing: Vec<_> = actual.difference(&listed).collect();
    let extra: Vec<_> = listed.difference(&actual).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nno such crate: {extra:#?}");
}

#[test]
fn rust_files_begin_with_their_purpose() {
    let sources = files(&["*.rs"]);
    assert!(sources.len() > 500, "{}", sources.len());
    let without: Vec<_> = sources.iter().filter(|file| !read(file).starts_with("//! ")).collect();
    assert!(without.is_empty(), "{without:#?}");
}

/// The first column of the table of the section "Components".
fn listed_crates(document: &str) -> BTreeSet<String> {
    let section = document.split("\n## Components\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
    let listed = rows.map(|(folder, contents)| {
        assert!(!contents.is_empty(), "{folder} is not described");
        folder.to_owned()
    });
    listed.collect()
}
