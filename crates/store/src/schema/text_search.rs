//! Full-text search: the lexemes of a chartset, and the `tsquery` that matches them.
//!
//! A word of the query matches a whole word of the chartset. The last word of the query, which the user may
//! still be typing, matches a prefix. A word in a script without spaces matches anywhere in a run of that
//! script: all suffixes of a run are indexed, and the query matches them by prefix. So is a Korean word. Its
//! suffixes are indexed as keys as well, for a last word of the query that ends in a half-typed syllable.
//!
//! A tag as a whole is one more lexeme, `#` and the folded tag. The words of titles and of artists are lexemes
//! a second time, after `=` and `@`. No word begins with one of these, so texts do not match them.

use std::collections::BTreeSet;

use chart_index_domain::search::SearchQuery;
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

/// Where the words of a text are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// In all names and in tags.
    Any,
    /// In the title and in romanised names.
    Title,
    /// In the artist and in romanised names.
    Artist,
}

impl Field {
    /// What its lexemes begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Title => "=",
            Self::Artist => "@",
        }
    }
}

/// The names and the tags of a chartset.
pub(crate) struct Names<'a> {
    pub(crate) title: &'a String,
    pub(crate) artist: &'a String,
    pub(crate) creator: &'a String,
    pub(crate) romanised: &'a [String],
    pub(crate) tags: &'a [String],
}

impl<'a> Names<'a> {
    /// Returns the lexemes, distinct and in the order of their bytes.
    pub(crate) fn lexemes(&self) -> Vec<String> {
        let tags = self.tags.iter().map(|tag| tag_lexeme(&text::sort_key(&replace_nul(tag))));
        let mut lexemes: BTreeSet<_> = tags.collect();
        let mut bytes = 0;
        for field in [Field::Any, Field::Title, Field::Artist] {
            for word in self.texts_of(field).flat_map(|text| text::words(text)) {
                for lexeme in lexemes_of(&word) {
                    bytes += lexeme.len();
                    if bytes > MAX_LEXEME_BYTES {
                        return lexemes.into_iter().collect();
                    }
                    lexemes.insert(format!("{}{lexeme}", field.prefix()));
                }
            }
        }
        lexemes.into_iter().collect()
    }

    fn texts_of(&self, field: Field) -> impl Iterator<Item = &'a String> + use<'a> {
        let Self { title, artist, creator, romanised, tags } = *self;
        let (names, tags) = match field {
            Field::Any => ([Some(title), Some(artist), Some(creator)], tags),
            Field::Title => ([Some(title), None, None], &[][..]),
            Field::Artist => ([Some(artist), None, None], &[][..]),
        };
        names.into_iter().flatten().chain(romanised).chain(tags)
    }
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
pub(crate) fn tsquery(field: Field, text: &str) -> Option<String> {
    let words = text::words(text);
    let last = words.len().checked_sub(1)?;
    let quoted = |lexeme: String| quoted(&format!("{}{lexeme}", field.prefix()));
    let terms = words.iter().enumerate().map(|(position, word)| match WordKind::of(word) {
        WordKind::Spaced if position < last => quoted(word_lexeme(word)),
        WordKind::Spaced => quoted(word_lexeme(word)) + ":*",
        WordKind::Korean if position == last => quoted(keys_lexeme(word)) + ":*",
        WordKind::Korean | WordKind::Unspaced => quoted(run_lexeme(word)) + ":*",
    });
    Some(terms.collect::<Vec<_>>().join(" & "))
}

/// Returns the `tsquery`, as text for a cast, of everything that chartsets have to match. `None` if that is
/// nothing, or if the text of the query has no words.
pub(crate) fn required_tsquery(query: &SearchQuery) -> Option<String> {
    let text = match &query.text {
        Some(text) => Some(tsquery(Field::Any, text)?),
        None => None,
    };
    let title = query.title.as_deref().and_then(|title| tsquery(Field::Title, title));
    let artist = query.artist.as_deref().and_then(|artist| tsquery(Field::Artist, artist));
    let terms: Vec<_> = [text, title, artist].into_iter().flatten().chain(tag_terms(&query.tags)).collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// Returns the `tsquery`, as text for a cast, of what excluded titles, artists and tags match. `None` without
/// any.
pub(crate) fn excluded_tsquery(query: &SearchQuery) -> Option<String> {
    let of = |field, texts: &[String]| {
        let terms = texts.iter().filter_map(|text| tsquery(field, text)).map(|all| format!("({all})"));
        terms.collect::<Vec<_>>()
    };
    let mut terms = of(Field::Title, &query.excluded_titles);
    terms.extend(of(Field::Artist, &query.excluded_artists));
    terms.extend(tag_terms(&query.excluded_tags));
    (!terms.is_empty()).then(|| terms.join(" | "))
}

fn tag_terms(tags: &[String]) -> impl Iterator<Item = String> {
    tags.iter().map(|tag| quoted(&tag_lexeme(&replace_nul(tag))))
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
            assert_eq!(tsquery(Field::Any, text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(tsquery(Field::Title, "Goin' 旋律").as_deref(), Some("'=goin' & '=旋律':*"));
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
        let (title, artist) = ("a".to_owned(), "x".to_owned());
        let names = Names { title: &title, artist: &artist, creator: &artist, romanised: &[], tags: &tags };
        assert_eq!(names.lexemes(), ["#a", "#two words'", "=a", "@x", "a", "two", "words", "x"]);
    }

    #[test]
    fn everything_is_required_and_any_is_excluded() {
        let tags = || vec!["a".to_owned(), "it's | b".into(), "\0".into()];
        let query = SearchQuery {
            text: Some("x".into()),
            title: Some("y z".into()),
            artist: Some("旋".into()),
            tags: tags(),
            excluded_titles: vec!["v w".into()],
            excluded_artists: vec!["u".into()],
            excluded_tags: tags(),
            ..SearchQuery::default()
        };
        let required = "'x':* & '=y' & '=z':* & '@旋':* & '#a' & '#it''s | b' & '#\u{fffd}'";
        assert_eq!(required_tsquery(&query).as_deref(), Some(required));
        let excluded = "('=v' & '=w':*) | ('@u':*) | '#a' | '#it''s | b' | '#\u{fffd}'";
        assert_eq!(excluded_tsquery(&query).as_deref(), Some(excluded));
        let wordless =
            SearchQuery { text: Some("!".into()), title: Some("a".into()), ..SearchQuery::default() };
        assert_eq!((required_tsquery(&wordless), excluded_tsquery(&wordless)), (None, None));
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(tsvector(&["a'b\\c".into(), "d".into()]), r"'a''b\\c' 'd'");
    }
}
