//! Folds text for sorting and splits it into words for searching.
//!
//! All search engines sort by the bytes of [`fold`]ed text and compare folded words, so that none depends on a
//! collation or a tokenizer of its own.

mod folding;
mod hangul;

pub use folding::{FOLDING_VERSION, fold, fold_case};
pub use hangul::hangul_keys;
use unicode_normalization::UnicodeNormalization;

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

/// The text with letters and marks composed, as they are typed (NFC).
#[must_use]
pub fn compose(text: &str) -> String {
    text.nfc().collect()
}

/// How the words of a script are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// A script with spaces between words: a term matches a word whole, or its beginning.
    Spaced,
    /// A script without spaces between words (Thai, Lao, Burmese, Khmer, kana, Han): a term may start anywhere
    /// in a run.
    Unspaced,
    /// Korean, whose words have endings and form compounds: a term may start at any syllable of a word. The
    /// last one of a query may be half-typed: see [`hangul_keys`].
    Korean,
}

impl WordKind {
    /// The kind of a folded word.
    #[must_use]
    pub fn of(word: &str) -> Self {
        word.chars().next().map_or(Self::Spaced, Self::of_character)
    }

    const fn of_character(character: char) -> Self {
        match character {
            _ if hangul::is_hangul(character) => Self::Korean,
            '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{2e80}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Self::Unspaced,
            _ => Self::Spaced,
        }
    }
}

/// The folded words of a text: runs of letters and digits with their marks, each of one [`WordKind`].
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous: Option<WordKind> = None;
    for character in fold(text).chars() {
        let kind = if folding::is_letter_or_digit(character) {
            Some(WordKind::of_character(character))
        } else if folding::is_mark(character) {
            // It belongs to the character before it.
            previous
        } else {
            None
        };
        if kind.is_some() && kind != previous {
            words.push(String::new());
        }
        if let (Some(_), Some(word)) = (kind, words.last_mut()) {
            word.push(character);
        }
        previous = kind;
    }
    words
}

/// The parts of a word that a term may be the beginning of: from each character on.
pub fn suffixes(word: &str) -> impl Iterator<Item = &str> {
    word.char_indices().map(|(start, _)| &word[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("한국어OP旋律노래", vec!["한국어", "op", "旋律", "노래"]),
            ("नमस्ते", vec!["नमस्ते"]),
            ("\u{94d} क\u{94d}", vec!["क\u{94d}"]),
            ("!!!", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }
}
