//! Tables of the documents: each row is one line, with as many cells as the first.

use super::{files, read};

/// The rows that are not, each with its line.
fn broken_rows(page: &str) -> Vec<(usize, &str)> {
    let (mut broken, mut columns, mut is_code) = (Vec::new(), None, false);
    for (number, line) in (1..).zip(page.lines().map(str::trim)) {
        is_code ^= line.starts_with("```");
        if is_code || !line.starts_with('|') {
            columns = None;
            continue;
        }
        let cells = line.replace("\\|", "").matches('|').count();
        if !line.ends_with('|') || cells != *columns.get_or_insert(cells) {
            broken.push((number, line));
        }
    }
    broken
}

#[test]
fn rows_of_tables_have_all_cells() {
    let mut count = 0;
    for file in files(&["*.md"]) {
        let page = read(&file);
        count += page.matches("\n|---|").count();
        assert_eq!(broken_rows(&page), [], "{file}");
    }
    assert!(count > 50, "{count} tables");
}
