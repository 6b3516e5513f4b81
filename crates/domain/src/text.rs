//! The one way in which text is folded for sorting and split into words for searching.
//!
//! Every engine sorts by the strings of [`fold`], byte by byte, so that two engines cannot disagree about the
//! collation of a language.

use unicode_normalization::UnicodeNormalization;

/// Folds case, accents and compatibility forms: `Ｃafé ` and `cafe` become the same.
///
/// Only the combining marks of Latin, Greek and Cyrillic letters are dropped; the marks that tell kana apart
/// stay.
#[must_use]
pub fn fold(text: &str) -> String {
    // Most names, and there is nothing in them to take apart.
    let lower = if text.is_ascii() { text.to_ascii_lowercase() } else { fold_characters(text) };
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fold_characters(text: &str) -> String {
    let without_accents = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c));
    without_accents.nfc().flat_map(char::to_lowercase).collect()
}

/// The longest sort key in bytes: as many as Meilisearch compares of a string when each is written as two digits,
/// and few enough for an entry of a b-tree index.
const MAX_SORT_KEY_BYTES: usize = 224;

/// What a title or an artist is sorted by, byte by byte: the folded text, cut at 224 bytes between characters.
/// Chartsets that agree so far are a tie.
#[must_use]
pub fn sort_key(text: &str) -> String {
    let mut key = fold(text);
    key.truncate(key.floor_char_boundary(MAX_SORT_KEY_BYTES));
    key
}

/// Lower case and nothing else, for matching part of a name as it is written.
#[must_use]
pub fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The folded words of a text: runs of letters and digits, cut also where a script written without spaces meets
/// one written with them.
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

/// Whether the character belongs to a script that writes no spaces between words (Thai, Lao, Burmese, Khmer,
/// kana, Han), where a word to look for may begin anywhere inside a run.
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
    fn ascii_is_folded_as_every_other_text() {
        let ascii: String = (0..=0x7f_u8).map(char::from).collect();
        assert_eq!(ascii.to_ascii_lowercase(), fold_characters(&ascii));
    }

    #[test]
    fn sort_keys_are_folded_and_cut_between_characters() {
        assert_eq!(sort_key("Ärger "), "arger");
        assert_eq!(sort_key(&"x".repeat(1_000)), "x".repeat(224));
        assert_eq!(sort_key(&"律".repeat(1_000)), "律".repeat(74));
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_of_one_kind_of_script() {
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
