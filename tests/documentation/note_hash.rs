//! The test vectors of the documents in docs/formats are those of the golden files.

use serde_json::Value;

use chart_index_tests::workspace_root;

use super::{code_blocks, read};

#[test]
fn vectors_are_those_of_the_golden_files() {
    for (document, golden) in [
        ("docs/formats/note-hash.md", "crates/chartfile/golden/note_hash_v1.json"),
        ("docs/formats/variant.md", "crates/chartfile/golden/variant_v1.json"),
        ("docs/formats/rating.md", "crates/chartfile/golden/rating_v1.json"),
        ("docs/formats/patterns.md", "crates/chartfile/golden/patterns_v1.json"),
    ] {
        let golden: Value = serde_json::from_str(&read(golden)).expect("the golden file is JSON");
        let golden = golden["vectors"].as_array().expect("vectors");
        let text = read(document);
        let [block] = code_blocks(&text, "json")[..] else { panic!("{document}: one block of vectors") };
        let documented: Vec<Value> = serde_json::from_str(block).expect("the vectors are JSON");
        assert!(!documented.is_empty(), "{document}");
        for vector in documented {
            assert!(golden.contains(&vector), "{document}: {vector} is not in the golden file");
        }
    }
}

#[test]
fn cases_of_the_note_hash_exist() {
    let text = read("docs/formats/note-hash.md");
    let is_case = |text: &&str| text.split('/').count() == 2 && !text.contains(' ');
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cases: Vec<&str> = rows
        .filter_map(|row| row.split(" | ").last())
        .flat_map(|cell| cell.split('`'))
        .filter(is_case)
        .collect();
    assert!(cases.len() >= 20, "{cases:?}");
    for case in cases {
        let folder = workspace_root().join("crates/chartfile/tests/cases").join(case);
        assert!(folder.is_dir(), "{case}");
    }
}
