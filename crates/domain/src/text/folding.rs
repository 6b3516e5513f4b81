//! Folds text: forms of a letter that people do not tell apart when they search become equal.

use unicase::UniCase;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The version of everything in this module: the stored columns of a catalogue and the documents of an index
/// are folded by it, and so are the queries.
///
/// It increases with every change of an output of this module, also by a newer version of Unicode, and of what
/// the store makes of it. `chart-indexer migrate` then folds the stored catalogue again. After a change of an
/// output the format of the search index increases too (decision 0077).
pub const FOLDING_VERSION: i32 = 2;

/// Folds case, accents, compatibility forms, the two kinds of kana, and white space: `Ｃafé ` and `cafe` become
/// equal, and so do `Straße` and `STRASSE`, `Bjørn` and `bjorn`, `ｶﾞ` and `が`.
///
/// The steps are those of `NFKC_Casefold` (Unicode Standard Annex #44), with more that become equal: letters
/// with and without marks, letters with a stroke and ligatures that Unicode does not decompose, and katakana
/// and hiragana. Marks remain in scripts in which they are letters, such as vowel signs and the voiced kana.
#[must_use]
pub fn fold(text: &str) -> String {
    // Fast path for most names.
    let folded = if text.is_ascii() { text.to_ascii_lowercase() } else { fold_characters(text) };
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn fold_characters(text: &str) -> String {
    let without_marks: String = text.nfkd().filter(|&character| !is_ignored(character)).collect();
    let mut letters = String::with_capacity(text.len());
    for character in fold_case(&without_marks).chars() {
        match character {
            'æ' => letters.push_str("ae"),
            'œ' => letters.push_str("oe"),
            'þ' => letters.push_str("th"),
            'ø' => letters.push('o'),
            'đ' | 'ð' => letters.push('d'),
            'ħ' => letters.push('h'),
            'ı' => letters.push('i'),
            'ł' => letters.push('l'),
            'ŧ' => letters.push('t'),
            other => letters.push(hiragana(other)),
        }
    }
    letters.nfc().collect()
}

/// Folds case only, for matching part of a name: `STRASSE` and `Straße` become equal, `e` and `é` do not.
#[must_use]
pub fn fold_case(text: &str) -> String {
    UniCase::unicode(text).to_folded_case()
}

/// Whether folding removes the character: accents and points of Latin, Greek, Cyrillic, Hebrew, Arabic and
/// Syriac letters, marks that combine with any character, variation selectors, and invisible characters such as
/// the soft hyphen.
fn is_ignored(character: char) -> bool {
    let has_optional_marks = matches!(character,
        '\u{300}'..='\u{74f}'
        | '\u{8ca}'..='\u{8ff}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}');
    match character.general_category() {
        GeneralCategory::Format => true,
        _ => has_optional_marks && is_mark(character),
    }
}

/// The hiragana letter of a katakana letter. Other characters stay as they are.
fn hiragana(character: char) -> char {
    match character {
        'ァ'..='ヶ' | 'ヽ' | 'ヾ' => char::from_u32(u32::from(character) - 0x60).unwrap_or(character),
        other => other,
    }
}

pub(super) fn is_letter_or_digit(character: char) -> bool {
    matches!(character.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

pub(super) fn is_mark(character: char) -> bool {
    character.general_category_group() == GeneralCategoryGroup::Mark
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::{hangul_keys, words};

    #[test]
    fn forms_of_a_letter_become_equal() {
        for (text, expected) in [
            ("Café", "cafe"),
            ("Re：End of a Dream", "re:end of a dream"),
            ("ＣＯＯＬ", "cool"),
            ("Gāruzu  Bando Pāti!\n", "garuzu bando pati!"),
            ("ÅNGSTRÖM", "angstrom"),
            ("Straße STRAẞE", "strasse strasse"),
            ("Bjørn Łódź Ænima Œuvre Þór ĐÀÐ", "bjorn lodz aenima oeuvre thor dad"),
            ("DİYARBAKIR ışık", "diyarbakir isik"),
            ("ΦΩΣ φως ΐ", "φωσ φωσ ι"),
            ("Ёлка Йод", "елка иод"),
            ("שָׁלוֹם مَرْحَبًا أ", "שלום مرحبا ا"),
            ("नमस्ते สวัสดี", "नमस्ते สวัสดี"),
            ("がぎ ガギ ｶﾞｷﾞ ハパバ", "がぎ がぎ がぎ はぱば"),
            ("ヷヴー", "わ\u{3099}ゔー"),
            ("한국 한국 ﾾￂﾤ ㅎㅏ", "한국 한국 하ᄂ 하"),
            ("\u{f9f4}㈱①", "林(株)1"),
            ("so\u{ad}ft 葛\u{e0100}", "soft 葛"),
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

    /// A change of the digest changes what is stored and what queries find: increase [`FOLDING_VERSION`], and
    /// `FORMAT` of the search index.
    #[test]
    fn version_matches_the_output_for_every_character() {
        let mut digest = blake3::Hasher::new();
        let last_planes = '\u{e0000}'..='\u{e01ef}';
        for character in ('\0'..='\u{33fff}').chain(last_planes) {
            let text = character.to_string();
            let words = words(&text);
            let keys = words.iter().map(|word| hangul_keys(word)).collect::<String>();
            for output in [&fold(&text), &fold_case(&text), &words.concat(), &keys] {
                digest.update(output.as_bytes()).update(b"\0");
            }
        }
        let digest = &digest.finalize().to_hex()[..16];
        assert_eq!((FOLDING_VERSION, digest), (2, "0df93a7637927c23"));
    }

    proptest! {
        #[test]
        fn folded_text_stays_as_it_is(text in "\\PC{0,40}") {
            let folded = fold(&text);
            prop_assert_eq!(fold(&folded), folded.clone());
        }

        #[test]
        fn composed_and_decomposed_text_become_equal(text in "\\PC{0,40}") {
            let decomposed: String = text.nfd().collect();
            prop_assert_eq!(fold(&text), fold(&decomposed));
        }
    }
}
