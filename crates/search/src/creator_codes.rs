//! The encoding of creator names, for an exact search of part of a name.
//!
//! `ÜNÏ` is part of `Ünïcode`, `uni` is not: a part is found as it is written, except for case. Meilisearch
//! cannot compare names themselves like that: it folds accents, parses a name of digits as a number, and
//! compares at most 468 bytes. Documents and queries therefore have names in a code of two characters per byte
//! of the case-folded name:
//!
//! | Text | Bytes, folded | Code |
//! |---|---|---|
//! | `Ünï` in a document | `c3 bc 6e c3 af` | `s3rcmes3qf` |
//! | `ÜN` in a query, found | `c3 bc 6e` | `s3rcme` |
//! | `un` in a query, not found | `75 6e` | `n5me` |
//! | `12` in a query | `31 32` | `j1j2` |
//!
//! The high half of a byte is a letter from `g` to `v`, the low half a digit from `0` to `f`. The two alphabets
//! have no character in common, so that a match never begins in the middle of a byte.
//!
//! A long name has several codes, of overlapping parts of it: every part of at most 117 bytes is within one of
//! them.

use chart_index_domain::text;

/// The maximum number of bytes of a name in one code: 468 characters, as many as Meilisearch compares.
const WINDOW_BYTES: usize = 234;
/// The maximum length of a part in bytes. Consecutive windows overlap by this length.
const MAX_PART_BYTES: usize = WINDOW_BYTES / 2;

/// The codes of a creator's name: one for each window.
pub(crate) fn codes(creator: &str) -> Vec<String> {
    let name = text::fold_case(creator);
    let mut windows = Vec::new();
    let mut rest = name.as_bytes();
    while rest.len() > WINDOW_BYTES {
        windows.push(code(&rest[..WINDOW_BYTES]));
        rest = &rest[WINDOW_BYTES - MAX_PART_BYTES..];
    }
    if !rest.is_empty() {
        windows.push(code(rest));
    }
    windows
}

/// The code of a part to search for; `None` if it is too long to be within one window in any case.
pub(crate) fn part_code(part: &str) -> Option<String> {
    let part = text::fold_case(part);
    (part.len() <= MAX_PART_BYTES).then(|| code(part.as_bytes()))
}

fn code(bytes: &[u8]) -> String {
    let high = |byte: u8| char::from(b'g' + (byte >> 4));
    let low = |byte: u8| char::from(b"0123456789abcdef"[usize::from(byte & 15)]);
    bytes.iter().flat_map(|&byte| [high(byte), low(byte)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contains(creator: &str, part: &str) -> Option<bool> {
        let part = part_code(part)?;
        Some(codes(creator).iter().any(|code| code.contains(&part)))
    }

    #[test]
    fn documented_codes_are_those_of_the_table() {
        assert_eq!(codes("Ünï"), ["s3rcmes3qf"]);
        for (part, code) in [("ÜN", "s3rcme"), ("un", "n5me"), ("12", "j1j2")] {
            assert_eq!(part_code(part).as_deref(), Some(code), "{part}");
        }
    }

    #[test]
    fn parts_match_exactly_except_for_case() {
        for (creator, part, expected) in [
            ("Ünïcode 作譜者", "ÜNÏ", true),
            ("Ünïcode 作譜者", "uni", false),
            ("100%_Real", "%_r", true),
            ("12345", "234", true),
            ("", "a", false),
        ] {
            assert_eq!(contains(creator, part), Some(expected), "{part:?} in {creator:?}");
        }
    }

    #[test]
    fn codes_have_at_most_468_characters() {
        assert!(codes(&"律".repeat(1_000)).iter().all(|code| code.len() <= 468));
        assert_eq!(part_code(&"律".repeat(40)), None);
    }

    proptest! {
        #[test]
        fn codes_contain_what_names_contain(
            before in "\\PC{0,200}", part in "\\PC{1,20}", after in "\\PC{0,200}", other in "[a-c]{1,2}",
        ) {
            let creator = format!("{before}{part}{after}");
            let is_in_name = |part: &str| text::fold_case(&creator).contains(&text::fold_case(part));
            for part in [part, other] {
                prop_assert_eq!(contains(&creator, &part), Some(is_in_name(&part)));
            }
        }
    }
}
