//! ARCHITECTURE.md has a line for each source file.

use std::collections::BTreeSet;

use super::{files, read};

const DESCRIBED: &[&str] = &[
    ":(glob)benchmarks/harness/page/**",
    ":(glob)benchmarks/harness/src/**",
    ":(glob)benchmarks/harness/tests/**",
    ":(glob)benchmarks/src/**",
    ":(glob)benchmarks/tests/**",
    ":(glob)compose/**",
    ":(glob)crates/*/benches/**/*.lua",
    ":(glob)crates/*/benches/**/*.rs",
    ":(glob)crates/*/examples/**",
    ":(glob)crates/*/fuzz/fuzz_targets/**",
    ":(glob)crates/*/migrations/**",
    ":(glob)crates/*/src/**",
    ":(glob)crates/*/tests/**/*.rs",
    ":(glob)docs/**",
    ":(glob)k8s/**",
    ":(glob)monitoring/**",
    ":(glob)scripts/**",
    ":(glob)services/*/src/**",
    ":(glob)services/*/tests/**",
    ":(glob)tests/*/**",
];

#[test]
fn layout_lists_every_file() {
    let listed = listed_files(&read("ARCHITECTURE.md"));
    let actual: BTreeSet<String> = files(DESCRIBED).into_iter().collect();
    assert!(actual.len() > 100, "{actual:?}");
    let missing: Vec<_> = actual.difference(&listed).collect();
    let extra: Vec<_> = listed.difference(&actual).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nno such file: {extra:#?}");
}

/// The files of the section "Repository layout": a line for each folder, and below it an indented line for each file,
/// its name and what it does.
fn listed_files(document: &str) -> BTreeSet<String> {
    let section = document.split("\n## Repository layout\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut listed = BTreeSet::new();
    let mut folder = "";
    for line in section.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if line.starts_with(' ') {
            let described = line.trim().len() > name.len();
            assert!(described, "{folder}{name} is not described");
            listed.insert(format!("{folder}{name}"));
        } else if name.ends_with('/') {
            folder = name;
        }
    }
    listed
}
