//! Part of a creator's name, found as it is written.
//!
//! Meilisearch folds accents before it compares, reads a name of digits as a number, and looks at the first 468 bytes
//! only. What is asked for is the name as it stands, whatever its case. So names are written in a code that folding
//! leaves alone: two characters for each byte of the lower-case name, from two alphabets that share nothing, so that
//! nothing matches in the middle of a byte.

use chart_index_domain::text;

/// How many bytes of a name one code holds: 468 characters, as many as Meilisearch compares.
const WINDOW_BYTES: usize = 234;
/// The longest part that is found, in bytes: any part so long lies whole in one of the windows.
const PART_BYTES: usize = WINDOW_BYTES / 2;

/// The codes of a creator's name: overlapping windows of it, so that a long name is searched as a whole.
pub(crate) fn codes(creator: &str) -> Vec<String> {
    let name = text::lower_case(creator);
    let mut windows = Vec::new();
    let mut rest = name.as_bytes();
    while rest.len() > WINDOW_BYTES {
        windows.push(code(&rest[..WINDOW_BYTES]));
        rest = &rest[WINDOW_BYTES - PART_BYTES..];
    }
    if !rest.is_empty() {
        windows.push(code(rest));
    }
    windows
}

/// The code of a part to look for; `None` for one that is too long to be found for certain.
pub(crate) fn part_code(part: &str) -> Option<String> {
    let part = text::lower_case(part);
    (part.len() <= PART_BYTES).then(|| code(part.as_bytes()))
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
    fn a_part_is_found_as_it_is_written_whatever_its_case() {
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
    fn no_code_is_longer_than_what_is_compared() {
        assert!(codes(&"律".repeat(1_000)).iter().all(|code| code.len() <= 468));
        assert_eq!(part_code(&"律".repeat(40)), None);
    }

    proptest! {
        #[test]
        fn codes_hold_what_names_hold(
            before in "\\PC{0,200}", part in "\\PC{1,20}", after in "\\PC{0,200}", other in "[a-c]{1,2}",
        ) {
            let creator = format!("{before}{part}{after}");
            let holds = |part: &str| text::lower_case(&creator).contains(&text::lower_case(part));
            for part in [part, other] {
                prop_assert_eq!(contains(&creator, &part), Some(holds(&part)));
            }
        }
    }
}
