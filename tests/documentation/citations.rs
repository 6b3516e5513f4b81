//! Comments that cite a section of docs/api.md cite one that exists.

use super::{files, joined_lines, read};

#[test]
fn cited_sections_exist() {
    let document = read("docs/api.md");
    let sections: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let (mut count, mut unknown) = (0, Vec::new());
    // This file holds the pattern itself.
    let sources = files(&["*.rs", "*.sql", "*.lua", ":!tests/documentation/citations.rs"]);
    assert!(sources.len() > 100, "{sources:?}");
    for file in sources {
        for section in cited(&read(&file)) {
            count += 1;
            if !sections.contains(&section.as_str()) {
                unknown.push(format!("{file}: {section}"));
            }
        }
    }
    assert!(count > 30, "{count} citations");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The sections that the comments of a file cite as `docs/api.md, "Section"`.
fn cited(code: &str) -> Vec<String> {
    let text = joined_lines(code);
    let citations = text.split("docs/api.md, \"").skip(1);
    citations.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}
