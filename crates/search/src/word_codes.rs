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
//! | Korean | `하늘` | `codedWords`: `rz1654 rz0za0 qs0c4f qc4f` | `하ㄴ` | `qs0c` |
//! | | | | `늘 a` | `"rz0za0" a` |
//! | any other | `Ночь` | `codedWords`: `w0u50u60uf0uk` | `ноч` | `w0u50u60uf` |
//!
//! - A Latin word stays as it is, and typos in it are tolerated.
//! - A run of a script without spaces becomes a word for each character, and a quoted phrase in a query, so
//!   that it is found anywhere in a longer run.
//! - A Korean word becomes a word for each syllable likewise, and one word for each syllable with the codes of
//!   all keys from there on: the last word of a query is found by its beginning, also with a half-typed
//!   syllable.
//! - A word of any other script becomes one word with a code for each character, which is found whole, or by
//!   its beginning if it is the last word of the query.

use chart_index_domain::text::{self, WordKind};

/// The maximum number of words and runs of a query: Meilisearch ignores the rest.
const MAX_TERMS: usize = 10;
/// The maximum length of a Latin word in bytes. Meilisearch ignores words above 250 bytes.
const MAX_WORD_BYTES: usize = 200;
/// The maximum length of a coded word in characters: with codes of up to five bytes below the same limit.
const MAX_CODED_CHARACTERS: usize = 48;
/// The maximum length of a run in a query in characters, as in PostgreSQL.
const MAX_RUN_CHARACTERS: usize = 64;
/// The maximum length of a Korean word in keys: with codes of up to six bytes below the same limit.
const MAX_KEYS: usize = 40;
/// The keys in the order of their codes, which are digits of base 36 except `z`: the vowels are `0` to `9`,
/// except for the rarest.
const KEYS: &str = "ㅏㅓㅗㅜㅡㅣㅐㅔㅕㅑㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎㅛㅠㅒㅖ";
/// The first character whose code of three digits would begin with `z`.
const LONG_CODES_FROM: u32 = 35 * 36 * 36;

/// The Latin words of a name, separated by spaces, and the Latin beginnings of mixed words: a query finds these
/// before the word is typed to its end.
pub(crate) fn latin_words(name: &str) -> String {
    let words = text::words(name);
    let latin = words.iter().map(|word| latin_beginning(word).0).filter(|word| !word.is_empty());
    latin.collect::<Vec<_>>().join(" ")
}

/// The codes of all other words and runs of a name, separated by spaces.
pub(crate) fn coded_words(name: &str) -> String {
    let mut words = Vec::new();
    for word in text::words(name) {
        match WordKind::of(&word) {
            WordKind::Spaced if latin_beginning(&word).1 => {}
            WordKind::Spaced => words.push(coded_word(&word)),
            WordKind::Unspaced => words.extend(run_codes(&word)),
            WordKind::Korean => {
                words.extend(run_codes(&word));
                words.extend(text::suffixes(&word).map(keys_code));
            }
        }
    }
    words.join(" ")
}

/// The text of a search for every word, the last one by its beginning; empty for a text without words. `None`
/// if there are more words than Meilisearch searches for.
pub(crate) fn query_words(text: &str) -> Option<String> {
    let words = text::words(text);
    if words.len() > MAX_TERMS {
        return None;
    }
    let terms = words.iter().enumerate().map(|(position, word)| match WordKind::of(word) {
        WordKind::Spaced => match latin_beginning(word) {
            (latin, true) => latin.to_owned(),
            _ => coded_word(word),
        },
        WordKind::Korean if position + 1 == words.len() => keys_code(word),
        WordKind::Korean | WordKind::Unspaced => {
            let codes: Vec<String> = run_codes(word).take(MAX_RUN_CHARACTERS).collect();
            format!("\"{}\"", codes.join(" "))
        }
    });
    Some(terms.collect::<Vec<_>>().join(" "))
}

/// A word for each character.
fn run_codes(run: &str) -> impl Iterator<Item = String> {
    run.chars().map(|character| format!("r{}", code(character)))
}

/// One word for the keys that type a Korean word, with a code for each. Nearly every syllable has a digit, so
/// that no name is a typo of the word.
fn keys_code(word: &str) -> String {
    let keys = text::hangul_keys(word);
    let key_code = |key| match (0..).zip(KEYS.chars()).find(|(_, other)| *other == key) {
        Some((number, _)) => digits(number, 1),
        None => format!("z{}", code(key)),
    };
    std::iter::once("q".to_owned()).chain(keys.chars().take(MAX_KEYS).map(key_code)).collect()
}

/// One word with a code for each character.
fn coded_word(word: &str) -> String {
    std::iter::once("w".to_owned()).chain(word.chars().take(MAX_CODED_CHARACTERS).map(code)).collect()
}

/// The beginning of a folded word in the letters `a` to `z` and digits, and whether that is the whole word.
fn latin_beginning(word: &str) -> (&str, bool) {
    let end = word.find(|character| !matches!(character, 'a'..='z' | '0'..='9'));
    let latin = &word[..end.unwrap_or(word.len())];
    (&latin[..latin.len().min(MAX_WORD_BYTES)], end.is_none())
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
            ("하늘", "", "rz1654 rz0za0 qs0c4f qc4f"),
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
            ("straß", "strass"),
            ("하ㄴ", "qs0c"),
            ("하늘 a", "\"rz1654 rz0za0\" a"),
            ("a b c d e f g h i j", "a b c d e f g h i j"),
        ] {
            assert_eq!(query_words(text).as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(query_words("a b c d e f g h i j k"), None);
    }

    #[test]
    fn words_have_at_most_250_bytes() {
        let long = [
            "\u{10400}".repeat(3_000),
            "a".repeat(3_000),
            "律".repeat(3_000),
            "ß".repeat(3_000),
            "한\u{d7fb}".repeat(3_000),
        ];
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
        fn words_are_found_by_their_beginning(word in "[a-zßøКлНочשלום]{1,80}", length in 1_usize..80) {
            let beginning: String = word.chars().take(length).collect();
            let (words, beginnings) = (text::words(&word), text::words(&beginning));
            prop_assume!(words.len() == 1 && beginnings.len() == 1 && words[0].starts_with(&beginnings[0]));
            let indexed = format!("{} {}", latin_words(&word), coded_words(&word));
            let query = query_words(&beginning).unwrap();
            prop_assert!(indexed.split(' ').any(|word| word.starts_with(&query)), "{query:?} in {indexed:?}");
        }
    }
}
