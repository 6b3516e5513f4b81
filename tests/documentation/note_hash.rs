//! The test vectors of docs/formats/note-hash.md are those of the golden file.

use serde_json::Value;

use super::{code_blocks, read};

#[test]
fn vectors_are_those_of_the_golden_file() {
    let golden: Value = serde_json::from_str(&read("crates/chartfile/golden/note_hash_v1.json"))
        .expect("the golden file is JSON");
    let golden = golden["vectors"].as_array().expect("vectors");
    let text = read("docs/formats/note-hash.md");
    let [block] = code_blocks(&text, "json")[..] else { panic!("one block of vectors") };
    let documented: Vec<Value> = serde_json::from_str(block).expect("the vectors are JSON");
    assert!(documented.len() > 5);
    for vector in documented {
        assert!(golden.contains(&vector), "{vector} is not in the golden file");
    }
}
