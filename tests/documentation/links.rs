//! Relative links and paths in the documentation lead to files and headings that exist.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use chart_index_tests::workspace_root;

use super::{files, read};

/// What begins with one of these between backticks is a path of the repository.
const FOLDERS: &[&str] =
    &["benchmarks/", "crates/", "docs/", "monitoring/", "scripts/", "services/", "tests/"];

#[test]
fn relative_links_resolve() {
    let documents = files(&["*.md"]);
    assert!(documents.len() > 5, "{documents:?}");
    let mut broken = Vec::new();
    for document in &documents {
        for link in links(&read(document)) {
            if !link.contains("://") && !resolves(document, &link) {
                broken.push(format!("{document}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn named_paths_exist() {
    let mut missing = Vec::new();
    for document in files(&["*.md"]) {
        let text = read(&document);
        // The parts with an odd number are between backticks.
        let code = prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2));
        let paths = code.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)));
        let plain = paths.filter(|path| !path.contains(['*', ' ', '{']) && !path.contains("NNNN"));
        missing.extend(plain.filter(|path| !workspace_root().join(path).exists()).map(str::to_owned));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The targets of inline links, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // The parts with an odd number are between backticks.
        let plain: String = line.split('`').step_by(2).collect();
        found.extend(plain.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
    }
    found
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn resolves(document: &str, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let target: PathBuf = if path.is_empty() { document.into() } else { folder.join(path) };
    if !workspace_root().join(&target).exists() {
        return false;
    }
    anchor.is_empty() || anchors(&read(target.to_str().expect("UTF-8"))).contains(anchor)
}

/// The anchors that a forge makes of headings: lower case, without punctuation, hyphens for spaces.
pub(super) fn anchors(text: &str) -> HashSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let lower = heading.trim_start_matches('#').trim().to_lowercase();
        let word = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        lower.chars().filter(word).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}
