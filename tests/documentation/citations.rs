//! Comments that cite a document, or a section of it, cite one that exists.

use chart_index_tests::workspace_root;

use super::links::anchors;
use super::{files, joined_lines, read};

#[test]
fn cited_documents_and_sections_exist() {
    let (mut count, mut unknown) = (0, Vec::new());
    // This file holds the pattern itself.
    let sources = files(&["*.rs", "*.sql", "*.lua", "*.js", ":!tests/documentation/citations.rs"]);
    assert!(sources.len() > 100, "{sources:?}");
    for file in sources {
        for (document, section) in cited(&read(&file)) {
            let has = |name: &str| match name.strip_prefix('#') {
                Some(anchor) => anchors(&read(&document)).contains(anchor),
                None => read(&document).contains(&format!("\n## {name}\n")),
            };
            count += usize::from(section.is_some());
            if !workspace_root().join(&document).is_file()
                || section.as_deref().is_some_and(|name| !has(name))
            {
                unknown.push(format!("{file}: {document}, {section:?}"));
            }
        }
    }
    assert!(count > 30, "{count} citations");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The documents that a file names, such as `docs/api.md`, with the section in `docs/api.md, "Section"` or
/// `docs/api.md#section`.
fn cited(code: &str) -> Vec<(String, Option<String>)> {
    let text = joined_lines(code);
    let named = text.split("docs/").skip(1).filter_map(|rest| rest.split_once(".md"));
    let is_path = |path: &str| path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-'));
    let is_anchor = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let section = |rest: &str| match rest.strip_prefix(", \"") {
        Some(heading) => Some(heading.split_once('"')?.0.to_owned()),
        None => Some(format!("#{}", rest.strip_prefix('#')?.split(|c| !is_anchor(c)).next()?)),
    };
    named
        .filter(|(path, _)| is_path(path))
        .map(|(path, rest)| (format!("docs/{path}.md"), section(rest)))
        .collect()
}
