//! Full-text search: the lexemes of a chartset, and the `tsquery` that matches them.
//!
//! A word of the query matches a whole word of the chartset. The last word of the query, which the user may
//! still be typing, matches a prefix. A word in a script without spaces matches anywhere in a run of that
//! script: all suffixes of a run are indexed, and the query matches them by prefix.

use std::collections::BTreeSet;

use chart_index_domain::{Chartset, Keywords, text};

/// Maximum length of the lexeme of a word, in characters of up to 4 bytes. PostgreSQL accepts 2,046 bytes.
const MAX_WORD_CHARACTERS: usize = 256;
/// Maximum length of the lexeme of a suffix, in characters. It is longer than queries, and limits the size of
/// the index for a long run.
const MAX_RUN_CHARACTERS: usize = 64;
/// Maximum size of all lexemes of a chartset. A `tsvector` holds 1 MiB; only malicious files get near this
/// limit.
const MAX_LEXEME_BYTES: usize = 128 * 1024;

/// Returns the lexemes of a chartset, distinct and in the order of their bytes.
pub(crate) fn lexemes(set: &Chartset, keywords: &Keywords) -> Vec<String> {
    let names = [&set.title, &set.artist, &set.creator];
    let texts = names.into_iter().chain(&keywords.romanised_names).chain(&keywords.tags);
    let mut lexemes = BTreeSet::new();
    let mut bytes = 0;
    for word in texts.flat_map(|text| text::words(text)) {
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
    if !is_run(word) {
        return vec![first_characters(word, MAX_WORD_CHARACTERS)];
    }
    word.char_indices().map(|(start, _)| first_characters(&word[start..], MAX_RUN_CHARACTERS)).collect()
}

/// Returns the `tsquery`, as text for a cast, that requires every word of a text. `None` for a text without
/// words, which matches nothing.
pub(crate) fn tsquery(text: &str) -> Option<String> {
    let words = text::words(text);
    let last = words.len().checked_sub(1)?;
    let terms = words.iter().enumerate().map(|(position, word)| {
        let is_run = is_run(word);
        let limit = if is_run { MAX_RUN_CHARACTERS } else { MAX_WORD_CHARACTERS };
        let lexeme = quoted(&first_characters(word, limit));
        if is_run || position == last { lexeme + ":*" } else { lexeme }
    });
    Some(terms.collect::<Vec<_>>().join(" & "))
}

/// Quotes a lexeme. Words consist of letters and digits, so nothing needs to be escaped, but this does not
/// depend on it.
fn quoted(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', r"\\").replace('\'', "''"))
}

/// Whether the word is a run of a script without spaces.
fn is_run(word: &str) -> bool {
    word.starts_with(text::is_written_without_spaces)
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
    }

    #[test]
    fn lexemes_have_a_maximum_length() {
        let long_run = lexemes_of(&"宙".repeat(5_000));
        assert!(long_run.iter().all(|lexeme| lexeme.chars().count() <= MAX_RUN_CHARACTERS));
        let long_word = lexemes_of(&"\u{10400}".repeat(5_000));
        assert!(long_word.iter().all(|lexeme| lexeme.len() < 2_046));
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(quoted(r"a'b\c"), r"'a''b\\c'");
    }
}
