//! Korean words as the keys that type them.
//!
//! While a syllable is typed, it shows as other syllables: `하늘` as `ㅎ`, `하`, `한`, `하느`, `하늘`. The keys of each
//! are the beginning of the keys of the next.

use unicode_normalization::UnicodeNormalization;

/// The keys of the initial consonants, from U+1100 on.
const INITIALS: &str = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ";
/// The keys of the vowels, from U+1161 on.
const VOWELS: [&str; 21] = [
    "ㅏ", "ㅐ", "ㅑ", "ㅒ", "ㅓ", "ㅔ", "ㅕ", "ㅖ", "ㅗ", "ㅗㅏ", "ㅗㅐ", "ㅗㅣ", "ㅛ", "ㅜ", "ㅜㅓ", "ㅜㅔ",
    "ㅜㅣ", "ㅠ", "ㅡ", "ㅡㅣ", "ㅣ",
];
/// The keys of the final consonants, from U+11A8 on.
const FINALS: [&str; 27] = [
    "ㄱ", "ㄲ", "ㄱㅅ", "ㄴ", "ㄴㅈ", "ㄴㅎ", "ㄷ", "ㄹ", "ㄹㄱ", "ㄹㅁ", "ㄹㅂ", "ㄹㅅ", "ㄹㅌ", "ㄹㅍ",
    "ㄹㅎ", "ㅁ", "ㅂ", "ㅂㅅ", "ㅅ", "ㅆ", "ㅇ", "ㅈ", "ㅊ", "ㅋ", "ㅌ", "ㅍ", "ㅎ",
];

/// The keys that type a folded Korean word on the common keyboard (KS X 5002), as compatibility jamo, which
/// folded text does not contain: `닭` becomes `ㄷㅏㄹㄱ`. Characters that it has no keys for stay as they are.
#[must_use]
pub fn hangul_keys(word: &str) -> String {
    let mut keys = String::with_capacity(3 * word.len());
    for jamo in word.nfd() {
        let index = |first: char| (u32::from(jamo) - u32::from(first)) as usize;
        match jamo {
            '\u{1100}'..='\u{1112}' => keys.extend(INITIALS.chars().nth(index('\u{1100}'))),
            '\u{1161}'..='\u{1175}' => keys.push_str(VOWELS[index('\u{1161}')]),
            '\u{11a8}'..='\u{11c2}' => keys.push_str(FINALS[index('\u{11a8}')]),
            other => keys.push(other),
        }
    }
    keys
}

/// Whether the character is a Korean syllable or a part of one. Folded text has no compatibility jamo.
pub(super) const fn is_hangul(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::fold;

    #[test]
    fn keys_are_those_that_type_a_word() {
        for (word, keys) in [
            ("하늘", "ㅎㅏㄴㅡㄹ"),
            ("닭", "ㄷㅏㄹㄱ"),
            ("과의", "ㄱㅗㅏㅇㅡㅣ"),
            ("값", "ㄱㅏㅂㅅ"),
            ("까있", "ㄲㅏㅇㅣㅆ"),
            ("힣", "ㅎㅣㅎ"),
            ("ㅋㅋㄳ", "ㅋㅋㄱㅅ"),
            ("ㅑ", "ㅑ"),
        ] {
            assert_eq!(hangul_keys(&fold(word)), keys, "{word}");
        }
    }

    #[test]
    fn half_typed_syllables_are_the_beginning() {
        for typed in [
            &["ㅎ", "하", "한", "하느", "하늘"][..],
            &["ㄱ", "고", "과", "괒", "과자"],
            &["ㄷ", "다", "달", "닭"],
        ] {
            let keys: Vec<String> = typed.iter().map(|text| hangul_keys(&fold(text))).collect();
            assert!(keys.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{keys:?}");
        }
    }
}
