//! The records of docs/decisions: each is in the table, complete and short, and cited records exist.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, joined_lines, read};

/// About a screen.
const MAX_LINES: usize = 45;

#[test]
fn every_record_is_in_the_table() {
    let index = read("docs/decisions/README.md");
    let rows: BTreeSet<&str> = index.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let listed = |number: &str, file: &str, title: &str| {
        let row = format!(" | {number} | [{title}]({file}) |");
        rows.iter().filter(|line| line.ends_with(&row)).count()
    };
    let records = records();
    for (number, file) in &records {
        let text = read(&format!("docs/decisions/{file}"));
        let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a title");
        assert_eq!(listed(number, file, title), 1, "{file}: no row with its number and title");
    }
    assert_eq!(rows.len(), records.len(), "rows without a record");
}

#[test]
fn records_are_complete_and_short() {
    for file in records().values() {
        let text = read(&format!("docs/decisions/{file}"));
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let required = headings.starts_with(&["Context", "Decision"]) && headings.contains(&"Cost");
        assert!(required, "{file}: {headings:?}");
        assert!(text.lines().count() <= MAX_LINES, "{file} has more than {MAX_LINES} lines");
    }
}

#[test]
fn cited_records_exist() {
    let (records, mut count, mut unknown) = (records(), 0, Vec::new());
    // This file holds the pattern itself.
    let sources = files(&["*.rs", "*.sql", "*.lua", "*.md", ":!tests/documentation/decisions.rs"]);
    for file in sources {
        for number in cited(&read(&file)) {
            count += 1;
            if !records.contains_key(&number) {
                unknown.push(format!("{file}: {number}"));
            }
        }
    }
    assert!(count > 10, "{count} citations");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The files of docs/decisions by their numbers, which are unique.
fn records() -> BTreeMap<String, String> {
    let mut records = BTreeMap::new();
    for path in files(&["docs/decisions/*.md", ":!docs/decisions/README.md"]) {
        let file = path.trim_start_matches("docs/decisions/").to_owned();
        let number = file.split('-').next().and_then(four_digits).unwrap_or_else(|| panic!("{file}"));
        let other = records.insert(number, file);
        assert_eq!(other, None, "two records with one number");
    }
    assert!(records.len() > 5, "{records:?}");
    records
}

/// The numbers of the records that a file cites as `decision NNNN`, also across the lines of a comment.
fn cited(text: &str) -> Vec<String> {
    let text = joined_lines(text);
    text.split("decision ").skip(1).filter_map(|rest| four_digits(rest.get(..4)?)).collect()
}

fn four_digits(text: &str) -> Option<String> {
    let is_number = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.to_owned())
}

#[test]
fn citation_may_continue_on_the_next_line() {
    assert_eq!(cited("/// Text (decision\n/// 0001), a decision 12 and `decision NNNN`."), ["0001"]);
}
