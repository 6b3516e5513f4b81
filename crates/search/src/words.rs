//! Free text: what is indexed of a name, and what is asked for.
//!
//! Meilisearch cuts text into words by rules of its own, which differ between scripts and depend on what stands
//! beside a word. Names and queries are therefore cut by [`text::words`] first, as for every engine, and handed over
//! in letters that Meilisearch takes as they are:
//!
//! - a word of Latin letters and digits stands for itself: it may be mistyped;
//! - a run of a script written without spaces becomes one code for each character, and a quoted phrase in a query,
//!   so that it is found anywhere inside a longer run;
//! - a word of any other script becomes one code, found whole or, as the last word, by its beginning.
//!
//! So whatever the exact engine finds for a text, Meilisearch finds as well.

use chart_index_domain::text;

/// The most words and runs of a query: Meilisearch takes no notice of any beyond.
const MAX_TERMS: usize = 10;
/// The longest plain word in bytes. Meilisearch indexes no word above 250.
const MAX_WORD_BYTES: usize = 200;
/// The longest coded word in characters, at [`CODE_DIGITS`] each below the same limit.
const MAX_CODED_CHARACTERS: usize = 60;
/// The longest part of a run that is asked for: as for the exact engine.
const MAX_RUN_CHARACTERS: usize = 64;
/// Digits of base 36 for one character: enough for every one of Unicode.
const CODE_DIGITS: usize = 4;

/// The plain words of a name, which may be mistyped, separated by spaces. Of a word that only begins with Latin letters
/// that beginning: it is what the word is found by while it is being typed.
pub(crate) fn plain(name: &str) -> String {
    let words = text::words(name).into_iter().map(|word| latin_beginning(&word).0);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The codes of the other words and runs of a name, separated by spaces.
pub(crate) fn coded(name: &str) -> String {
    let words = text::words(name).into_iter().filter_map(|word| match Term::of(&word) {
        Term::Plain(_) => None,
        Term::Run(codes) => Some(codes.join(" ")),
        Term::Coded(code) => Some(code),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What to ask for to find every word of the text, the last by its beginning; empty for a text without words.
/// `None` for a text of more words than Meilisearch looks at.
pub(crate) fn query(text: &str) -> Option<String> {
    let words = text::words(text);
    if words.len() > MAX_TERMS {
        return None;
    }
    let terms = words.iter().map(|word| match Term::of(word) {
        Term::Plain(word) | Term::Coded(word) => word,
        Term::Run(codes) => format!("\"{}\"", codes[..codes.len().min(MAX_RUN_CHARACTERS)].join(" ")),
    });
    Some(terms.collect::<Vec<_>>().join(" "))
}

/// A word as Meilisearch is given it.
enum Term {
    Plain(String),
    /// The code of every character.
    Run(Vec<String>),
    Coded(String),
}

impl Term {
    fn of(word: &str) -> Self {
        if word.starts_with(text::is_written_without_spaces) {
            return Self::Run(word.chars().map(|character| format!("r{}", code(character))).collect());
        }
        if let (plain, true) = latin_beginning(word) {
            return Self::Plain(plain);
        }
        let codes = word.chars().take(MAX_CODED_CHARACTERS).map(code);
        Self::Coded(std::iter::once("w".to_owned()).chain(codes).collect())
    }
}

/// The beginning of a word that can be written in the 26 letters and 10 digits, and whether that is all of it. Letter
/// by letter, so that the beginning of a word stays the beginning. Folding has dropped the accents; these letters
/// have none to drop.
fn latin_beginning(word: &str) -> (String, bool) {
    let mut plain = String::with_capacity(word.len());
    for character in word.chars() {
        match character {
            'a'..='z' | '0'..='9' => plain.push(character),
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'þ' => plain.push_str("th"),
            'ø' => plain.push('o'),
            'đ' | 'ð' => plain.push('d'),
            'ħ' => plain.push('h'),
            'ı' => plain.push('i'),
            'ł' => plain.push('l'),
            'ŧ' => plain.push('t'),
            _ => {
                plain.truncate(MAX_WORD_BYTES);
                return (plain, false);
            }
        }
    }
    plain.truncate(MAX_WORD_BYTES);
    (plain, true)
}

fn code(character: char) -> String {
    let mut rest = u32::from(character);
    let mut digits = [0; CODE_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = rest % 36;
        rest /= 36;
    }
    digits.iter().filter_map(|&digit| char::from_digit(digit, 36)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_plain_words_and_codes() {
        for (name, expected_plain, expected_coded) in [
            ("Goin' Under (OP Cut)", "goin under op cut", ""),
            ("宙のOP2", "op2", "r0i3d r09ke"),
            ("Straße Bjørn", "strasse bjorn", ""),
            ("Ноч 7K", "7k", "w00u500u600uf"),
            ("MIXедx", "mix", "w0031002x003c00tx00tw003c"),
            ("!!!", "", ""),
        ] {
            assert_eq!(
                (plain(name).as_str(), coded(name).as_str()),
                (expected_plain, expected_coded),
                "{name:?}"
            );
        }
    }

    #[test]
    fn operators_of_meilisearch_are_only_text() {
        for (text, expected) in [
            ("\"goin under\" -the", "goin under the"),
            ("-", ""),
            ("\"", ""),
            ("宙の op", "\"r0i3d r09ke\" op"),
            ("a b c d e f g h i j", "a b c d e f g h i j"),
        ] {
            assert_eq!(query(text).as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(query("a b c d e f g h i j k"), None);
    }

    #[test]
    fn no_word_is_longer_than_what_is_indexed() {
        let long = ["\u{10400}".repeat(3_000), "a".repeat(3_000), "律".repeat(3_000), "ß".repeat(3_000)];
        let words = long.iter().flat_map(|name| [plain(name), coded(name), query(name).unwrap()]);
        assert!(
            words
                .flat_map(|text| text.split(' ').map(str::len).collect::<Vec<_>>())
                .all(|length| length <= 250)
        );
    }

    proptest! {
        #[test]
        fn only_letters_digits_quotes_and_spaces_reach_meilisearch(text in "\\PC{0,40}") {
            let all = [plain(&text), coded(&text), query(&text).unwrap_or_default()].concat();
            prop_assert!(all.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '"' | ' ')), "{all}");
        }

        #[test]
        fn a_word_is_found_by_its_beginning(word in "[a-zßøКлНочשלום한국어]{1,80}", length in 1_usize..80) {
            let beginning: String = word.chars().take(length).collect();
            let (words, beginnings) = (text::words(&word), text::words(&beginning));
            prop_assume!(words.len() == 1 && beginnings.len() == 1 && words[0].starts_with(&beginnings[0]));
            let (indexed, asked) = (format!("{} {}", plain(&word), coded(&word)), query(&beginning).unwrap());
            prop_assert!(indexed.split(' ').any(|word| word.starts_with(&asked)), "{asked:?} in {indexed:?}");
        }
    }
}
