//! Free text: the words that a chartset is found by, and the query that finds them.
//!
//! A word of the query matches a whole word of the chartset; the last one, which may still be being typed, matches
//! its beginning. A word in a script written without spaces matches anywhere in a run of that script: each run
//! is indexed by all its suffixes and looked up by prefix.

use std::collections::BTreeSet;

use chart_index_domain::{Chartset, Keywords, text};

/// The longest lexeme of a word, in characters: at 4 bytes each well below the 2,046 bytes of PostgreSQL.
const MAX_WORD_CHARACTERS: usize = 256;
/// The longest lexeme of a suffix. More than anybody types of one run, and it bounds what a long run costs.
const MAX_RUN_CHARACTERS: usize = 64;
/// What all lexemes of a chartset may take. A tsvector holds 1 MiB; only hostile files come near this.
const MAX_LEXEME_BYTES: usize = 128 * 1024;

/// The lexemes of a chartset, distinct and in the order of their bytes.
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

/// The tsquery, as text for a cast, that every word of the text must match. `None` for a text without words, which
/// finds nothing.
pub(crate) fn tsquery(text: &str) -> Option<String> {
    let words = text::words(text);
    let last = words.len().checked_sub(1)?;
    let terms = words.iter().enumerate().map(|(position, word)| {
        let run = is_run(word);
        let limit = if run { MAX_RUN_CHARACTERS } else { MAX_WORD_CHARACTERS };
        let lexeme = quoted(&first_characters(word, limit));
        if run || position == last { lexeme + ":*" } else { lexeme }
    });
    Some(terms.collect::<Vec<_>>().join(" & "))
}

/// Words are letters and digits, so that there is nothing to escape today; this does not rely on it.
fn quoted(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', r"\\").replace('\'', "''"))
}

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
    fn every_word_must_match_and_the_last_may_be_unfinished() {
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
    fn a_run_without_spaces_is_indexed_by_its_suffixes() {
        assert_eq!(lexemes_of("宙の旋律"), ["宙の旋律", "の旋律", "旋律", "律"]);
        assert_eq!(lexemes_of("melody"), ["melody"]);
    }

    #[test]
    fn lexemes_are_bounded_whatever_a_file_holds() {
        let long_run = lexemes_of(&"宙".repeat(5_000));
        assert!(long_run.iter().all(|lexeme| lexeme.chars().count() <= MAX_RUN_CHARACTERS));
        let long_word = lexemes_of(&"\u{10400}".repeat(5_000));
        assert!(long_word.iter().all(|lexeme| lexeme.len() < 2_046));
    }

    #[test]
    fn what_would_end_a_lexeme_is_escaped() {
        assert_eq!(quoted(r"a'b\c"), r"'a''b\\c'");
    }
}
