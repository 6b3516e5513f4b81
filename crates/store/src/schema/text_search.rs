//! Full-text search: the lexemes of a chartset, and the `tsquery` that matches them.
//!
//! A word of the query matches a whole word of the chartset. The last word of the query, which the user may
//! still be typing, matches a prefix. A word in a script without spaces matches anywhere in a run of that
//! script: all suffixes of a run are indexed, and the query matches them by prefix. So is a Korean word. Its
//! suffixes are indexed as keys as well, for a last word of the query that ends in a half-typed syllable.
//!
//! A tag as a whole is one more lexeme, `#` and the folded tag, by which chartsets are excluded. No word begins
//! with `#`, so texts do not match it.

use std::collections::BTreeSet;

use chart_index_domain::text::{self, WordKind};

use crate::schema::sql_text::replace_nul;

/// Maximum length of the lexeme of a word, in characters of up to 4 bytes. PostgreSQL accepts 2,046 bytes.
const MAX_WORD_CHARACTERS: usize = 256;
/// Maximum length of the lexeme of a suffix, in characters. It is longer than queries, and limits the size of
/// the index for a long run.
const MAX_RUN_CHARACTERS: usize = 64;
/// Maximum size of the lexemes of all words of a chartset. A `tsvector` holds 1 MiB; only malicious files get
/// near this limit. Lexemes of whole tags have at most a fourth of it in addition: `MAX_TAGS` times
/// `MAX_SORT_KEY_BYTES`.
const MAX_LEXEME_BYTES: usize = 128 * 1024;

/// Returns the lexemes of a chartset with these names and tags, distinct and in the order of their bytes.
pub(crate) fn lexemes<'a>(names: impl Iterator<Item = &'a String>, tags: &'a [String]) -> Vec<String> {
    let mut lexemes: BTreeSet<_> =
        tags.iter().map(|tag| tag_lexeme(&text::sort_key(&replace_nul(tag)))).collect();
    let mut bytes = 0;
    for word in names.chain(tags).flat_map(|text| text::words(text)) {
        for lexeme in lexemes_of(&word) {
            bytes += lexeme.len();
            if bytes > MAX_LEXEME_BYTES {
                return lexemes.into_iter().collect();
            }
            lexemes.insert(lexeme);
        }
    }
    lexemes.into_iter().collect()
}

fn lexemes_of(word: &str) -> Vec<String> {
    let suffixes = || text::suffixes(word).map(run_lexeme);
    match WordKind::of(word) {
        WordKind::Spaced => vec![word_lexeme(word)],
        WordKind::Unspaced => suffixes().collect(),
        WordKind::Korean => suffixes().chain(text::suffixes(word).map(keys_lexeme)).collect(),
    }
}

/// The `tsvector` with these lexemes, as text for a cast.
pub(crate) fn tsvector(lexemes: &[String]) -> String {
    lexemes.iter().map(|lexeme| quoted(lexeme)).collect::<Vec<_>>().join(" ")
}

/// Returns the `tsquery`, as text for a cast, that requires every word of a text. `None` for a text without
/// words, which matches nothing.
pub(crate) fn tsquery(text: &str) -> Option<String> {
    let words = text::words(text);
    let last = words.len().checked_sub(1)?;
    let terms = words.iter().enumerate().map(|(position, word)| match WordKind::of(word) {
        WordKind::Spaced if position < last => quoted(&word_lexeme(word)),
        WordKind::Spaced => quoted(&word_lexeme(word)) + ":*",
        WordKind::Korean if position == last => quoted(&keys_lexeme(word)) + ":*",
        WordKind::Korean | WordKind::Unspaced => quoted(&run_lexeme(word)) + ":*",
    });
    Some(terms.collect::<Vec<_>>().join(" & "))
}

/// Returns the `tsquery`, as text for a cast, that any of these folded tags matches. `None` without tags.
pub(crate) fn any_tag_tsquery(tags: &[String]) -> Option<String> {
    let terms: Vec<_> = tags.iter().map(|tag| quoted(&tag_lexeme(&replace_nul(tag)))).collect();
    (!terms.is_empty()).then(|| terms.join(" | "))
}

/// The lexeme of a whole tag, which is folded as [`text::sort_key`].
fn tag_lexeme(tag: &str) -> String {
    format!("#{tag}")
}

/// Quotes a lexeme. Words consist of letters and digits, but whole tags may have any characters.
fn quoted(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', r"\\").replace('\'', "''"))
}

fn word_lexeme(word: &str) -> String {
    first_characters(word, MAX_WORD_CHARACTERS)
}

fn run_lexeme(run: &str) -> String {
    first_characters(run, MAX_RUN_CHARACTERS)
}

fn keys_lexeme(run: &str) -> String {
    first_characters(&text::hangul_keys(run), MAX_RUN_CHARACTERS)
}

fn first_characters(text: &str, count: usize) -> String {
    text.chars().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_required_and_the_last_is_a_prefix() {
        for (text, expected) in [
            ("Goin' Un", Some("'goin' & 'un':*")),
            ("旋律 op", Some("'旋律':* & 'op':*")),
            ("a", Some("'a':*")),
            ("한국 노", Some("'한국':* & 'ㄴㅗ':*")),
            ("' | ! & ( :* \\", None),
            ("😀", None),
        ] {
            assert_eq!(tsquery(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn runs_without_spaces_are_indexed_by_suffix() {
        assert_eq!(lexemes_of("宙の旋律"), ["宙の旋律", "の旋律", "旋律", "律"]);
        assert_eq!(lexemes_of("melody"), ["melody"]);
        assert_eq!(lexemes_of("한국"), ["한국", "국", "ㅎㅏㄴㄱㅜㄱ", "ㄱㅜㄱ"]);
    }

    #[test]
    fn lexemes_have_a_maximum_length() {
        let long_run = lexemes_of(&"宙".repeat(5_000));
        assert!(long_run.iter().all(|lexeme| lexeme.chars().count() <= MAX_RUN_CHARACTERS));
        let long_word = lexemes_of(&"\u{10400}".repeat(5_000));
        assert!(long_word.iter().all(|lexeme| lexeme.len() < 2_046));
    }

    #[test]
    fn tags_are_lexemes_as_a_whole() {
        let tags = ["Two Wörds'".to_owned(), "a".into(), "A".into()];
        assert_eq!(lexemes(["a".to_owned()].iter(), &tags), ["#a", "#two words'", "a", "two", "words"]);
        let excluded = ["a".to_owned(), "it's | b".into(), "\0".into()];
        assert_eq!(any_tag_tsquery(&excluded).as_deref(), Some("'#a' | '#it''s | b' | '#\u{fffd}'"));
        assert_eq!(any_tag_tsquery(&[]), None);
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(tsvector(&["a'b\\c".into(), "d".into()]), r"'a''b\\c' 'd'");
    }
}
