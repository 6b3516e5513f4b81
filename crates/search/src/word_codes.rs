//! The encoding of words, for free text in all scripts.
//!
//! Meilisearch splits text into words by rules that differ between scripts and depend on neighbouring words, so
//! that it would not find everything that PostgreSQL finds. Names and queries are therefore split by
//! [`text::words`], as for PostgreSQL, and sent as words of Latin letters and digits, which Meilisearch leaves
//! as they are:
//!
//! | Script | Name | Attribute and value | Query | Words of the query |
//! |---|---|---|---|---|
//! | Latin | `Straße` | `titleWords`: `strasse` | `stras` | `stras` |
//! | written without spaces | `宙のOP` | `codedWords`: `ri3d r9ke` (and `titleWords`: `op`) | `の` | `"r9ke"` |
//! | any other | `Ночь` | `codedWords`: `w0u50u60uf0uk` | `ноч` | `w0u50u60uf` |
//!
//! - A Latin word stays as it is, and typos in it are tolerated.
//! - A run of a script without spaces becomes a word for each character, and a quoted phrase in a query, so
//!   that it is found anywhere in a longer run.
//! - A word of any other script becomes one word with a code for each character, which is found whole, or by
//!   its beginning if it is the last word of the query.

use chart_index_domain::text;

/// The maximum number of words and runs of a query: Meilisearch ignores the rest.
const MAX_TERMS: usize = 10;
/// The maximum length of a Latin word in bytes. Meilisearch ignores words above 250 bytes.
const MAX_WORD_BYTES: usize = 200;
/// The maximum length of a coded word in characters: with codes of up to five bytes below the same limit.
const MAX_CODED_CHARACTERS: usize = 48;
/// The maximum length of a run in a query in characters, as in PostgreSQL.
const MAX_RUN_CHARACTERS: usize = 64;
/// The first character whose code of three digits would begin with `z`.
const LONG_CODES_FROM: u32 = 35 * 36 * 36;

/// The Latin words of a name, separated by spaces, and the Latin beginnings of mixed words: a query finds these
/// before the word is typed to its end.
pub(crate) fn latin_words(name: &str) -> String {
    let words = text::words(name).into_iter().map(|word| latin_beginning(&word).0);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The codes of all other words and runs of a name, separated by spaces.
pub(crate) fn coded_words(name: &str) -> String {
    let words = text::words(name).into_iter().filter_map(|word| match Term::new(&word) {
        Term::Latin(_) => None,
        Term::Run(codes) => Some(codes.join(" ")),
        Term::Coded(code) => Some(code),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The text of a search for every word, the last one by its beginning; empty for a text without words. `None`
/// if there are more words than Meilisearch searches for.
pub(crate) fn query_words(text: &str) -> Option<String> {
    let words = text::words(text);
    if words.len() > MAX_TERMS {
        return None;
    }
    let terms = words.iter().map(|word| match Term::new(word) {
        Term::Latin(word) | Term::Coded(word) => word,
        Term::Run(codes) => format!("\"{}\"", codes[..codes.len().min(MAX_RUN_CHARACTERS)].join(" ")),
    });
    Some(terms.collect::<Vec<_>>().join(" "))
}

/// A word as it is sent to Meilisearch.
enum Term {
    Latin(String),
    /// A word for each character.
    Run(Vec<String>),
    Coded(String),
}

impl Term {
    fn new(word: &str) -> Self {
        if word.starts_with(text::is_written_without_spaces) {
            return Self::Run(word.chars().map(|character| format!("r{}", code(character))).collect());
        }
        if let (latin, true) = latin_beginning(word) {
            return Self::Latin(latin);
        }
        let codes = word.chars().take(MAX_CODED_CHARACTERS).map(code);
        Self::Coded(std::iter::once("w".to_owned()).chain(codes).collect())
    }
}

/// The beginning of a word that can be written in the letters `a` to `z` and digits, and whether that is the
/// whole word. Each letter is converted on its own, so that the beginning of a word remains its beginning.
/// Folding has removed accents; the letters listed here are not decomposed by it.
fn latin_beginning(word: &str) -> (String, bool) {
    let mut latin = String::with_capacity(word.len());
    for character in word.chars() {
        match character {
            'a'..='z' | '0'..='9' => latin.push(character),
            'ß' => latin.push_str("ss"),
            'æ' => latin.push_str("ae"),
            'œ' => latin.push_str("oe"),
            'þ' => latin.push_str("th"),
            'ø' => latin.push('o'),
            'đ' | 'ð' => latin.push('d'),
            'ħ' => latin.push('h'),
            'ı' => latin.push('i'),
            'ł' => latin.push('l'),
            'ŧ' => latin.push('t'),
            _ => {
                latin.truncate(MAX_WORD_BYTES);
                return (latin, false);
            }
        }
    }
    latin.truncate(MAX_WORD_BYTES);
    (latin, true)
}

/// The code of a character: three digits of base 36 for nearly all, `z` and four digits for the rest. No code
/// is the beginning of another, so that words begin alike exactly if their codes do. The codes are short
/// because Meilisearch precomputes the completions of up to four letters.
fn code(character: char) -> String {
    let number = u32::from(character);
    if number < LONG_CODES_FROM { digits(number, 3) } else { format!("z{}", digits(number, 4)) }
}

/// A number in `count` digits of base 36.
fn digits(number: u32, count: u32) -> String {
    let digit = |place| char::from_digit(number / 36_u32.pow(place) % 36, 36);
    (0..count).rev().filter_map(digit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_latin_words_and_codes() {
        for (name, latin, coded) in [
            ("Goin' Under (OP Cut)", "goin under op cut", ""),
            ("宙のOP2", "op2", "ri3d r9ke"),
            ("Straße Bjørn", "strasse bjorn", ""),
            ("Ночь 7K", "7k", "w0u50u60uf0uk"),
            ("Straße", "strasse", ""),
            ("宙のOP", "op", "ri3d r9ke"),
            ("MIXедx", "mix", "w03102x03c0tx0tw03c"),
            ("!!!", "", ""),
        ] {
            assert_eq!((latin_words(name).as_str(), coded_words(name).as_str()), (latin, coded), "{name:?}");
        }
    }

    #[test]
    fn query_syntax_of_meilisearch_is_text() {
        for (text, expected) in [
            ("\"goin under\" -the", "goin under the"),
            ("-", ""),
            ("\"", ""),
            ("宙の op", "\"ri3d r9ke\" op"),
            ("の", "\"r9ke\""),
            ("ноч", "w0u50u60uf"),
            ("stras", "stras"),
            ("a b c d e f g h i j", "a b c d e f g h i j"),
        ] {
            assert_eq!(query_words(text).as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(query_words("a b c d e f g h i j k"), None);
    }

    #[test]
    fn words_have_at_most_250_bytes() {
        let long = ["\u{10400}".repeat(3_000), "a".repeat(3_000), "律".repeat(3_000), "ß".repeat(3_000)];
        let words =
            long.iter().flat_map(|name| [latin_words(name), coded_words(name), query_words(name).unwrap()]);
        assert!(
            words
                .flat_map(|text| text.split(' ').map(str::len).collect::<Vec<_>>())
                .all(|length| length <= 250)
        );
    }

    proptest! {
        #[test]
        fn words_are_letters_digits_quotes_and_spaces(text in "\\PC{0,40}") {
            let all = [latin_words(&text), coded_words(&text), query_words(&text).unwrap_or_default()].concat();
            prop_assert!(all.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '"' | ' ')), "{all}");
        }

        #[test]
        fn words_are_found_by_their_beginning(word in "[a-zßøКлНочשלום한국어]{1,80}", length in 1_usize..80) {
            let beginning: String = word.chars().take(length).collect();
            let (words, beginnings) = (text::words(&word), text::words(&beginning));
            prop_assume!(words.len() == 1 && beginnings.len() == 1 && words[0].starts_with(&beginnings[0]));
            let indexed = format!("{} {}", latin_words(&word), coded_words(&word));
            let query = query_words(&beginning).unwrap();
            prop_assert!(indexed.split(' ').any(|word| word.starts_with(&query)), "{query:?} in {indexed:?}");
        }
    }
}
