//! docs/api.md lists every kind of error.

use super::read;

#[test]
fn every_problem_type_is_documented() {
    let (code, documented) = (read("crates/http/src/error_type.rs"), read("docs/api.md"));
    let types: Vec<&str> =
        code.split('"').filter(|text| text.starts_with("/problems/") && !text.contains(' ')).collect();
    assert!(types.len() > 10, "{types:?}");
    for problem in types {
        assert!(documented.contains(&format!("| `{problem}` |")), "{problem} is not documented");
    }
}
