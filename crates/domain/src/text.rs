//! Folds text for sorting and splits it into words for searching.
//!
//! All search engines sort by the bytes of [`fold`]ed text, so that none depends on a collation of its own.

use unicode_normalization::UnicodeNormalization;

/// Folds case, accents, compatibility forms and white space: `Ｃafé ` and `cafe` become equal.
///
/// Only the combining marks of Latin, Greek and Cyrillic letters are removed, not those that distinguish kana.
#[must_use]
pub fn fold(text: &str) -> String {
    // Fast path for most names.
    let lower = if text.is_ascii() { text.to_ascii_lowercase() } else { fold_characters(text) };
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fold_characters(text: &str) -> String {
    let without_accents = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c));
    without_accents.nfc().flat_map(char::to_lowercase).collect()
}

/// The maximum length of a sort key in bytes. In hexadecimal, 224 bytes are as many as Meilisearch compares of
/// a string, and they fit into an entry of a B-tree index.
pub const MAX_SORT_KEY_BYTES: usize = 224;

/// The sort key of a title or an artist, compared by bytes: the folded text, truncated to 224 bytes at a
/// character boundary. Texts with equal keys are a tie.
#[must_use]
pub fn sort_key(text: &str) -> String {
    let mut key = fold(text);
    key.truncate(key.floor_char_boundary(MAX_SORT_KEY_BYTES));
    key
}

/// Converts to lower case without folding accents, for matching part of a name.
#[must_use]
pub fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The folded words of a text: runs of letters and digits, also split between a script that is written with
/// spaces and one that is not.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous: Option<bool> = None;
    for character in fold(text).chars() {
        if !character.is_alphanumeric() {
            previous = None;
            continue;
        }
        let spaceless = is_written_without_spaces(character);
        if previous != Some(spaceless) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
        previous = Some(spaceless);
    }
    words
}

/// Whether the character belongs to a script without spaces between words (Thai, Lao, Burmese, Khmer, kana,
/// Han). A search term in such a script may start anywhere in a run.
#[must_use]
pub const fn is_written_without_spaces(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_compatibility_forms_are_folded() {
        for (text, expected) in [
            ("Café", "cafe"),
            ("Re：End of a Dream", "re:end of a dream"),
            ("ＣＯＯＬ", "cool"),
            ("Gāruzu  Bando Pāti!\n", "garuzu bando pati!"),
            ("がぎ", "がぎ"),
            ("한국", "한국"),
            ("ÅNGSTRÖM", "angstrom"),
            ("", ""),
        ] {
            assert_eq!(fold(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ascii_is_folded_like_other_text() {
        let ascii: String = (0..=0x7f_u8).map(char::from).collect();
        assert_eq!(ascii.to_ascii_lowercase(), fold_characters(&ascii));
    }

    #[test]
    fn sort_keys_are_folded_and_truncated() {
        assert_eq!(sort_key("Ärger "), "arger");
        assert_eq!(sort_key(&"x".repeat(1_000)), "x".repeat(224));
        assert_eq!(sort_key(&"律".repeat(1_000)), "律".repeat(74));
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("Goin' Under", vec!["goin", "under"]),
            ("Y.E.A.H", vec!["y", "e", "a", "h"]),
            ("宙の旋律 -the melody- (OP Cut)", vec!["宙の旋律", "the", "melody", "op", "cut"]),
            ("旋律OP2", vec!["旋律", "op2"]),
            ("!!!", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }
}
