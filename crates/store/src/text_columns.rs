//! Text as the columns can hold it.

use std::borrow::Cow;

use chart_index_domain::text;

/// The longest sort key in characters. At 4 bytes each it fits an entry of a b-tree index (2,704 bytes).
const MAX_SORT_KEY_CHARACTERS: usize = 512;

/// A text without the character NUL, which PostgreSQL cannot store. Hostile files hold it.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// What a title or an artist is sorted by.
pub(crate) fn sort_key(text: &str) -> String {
    text::fold(text).chars().take(MAX_SORT_KEY_CHARACTERS).collect()
}

/// The pattern of LIKE that matches any text with this one in it.
pub(crate) fn like_anywhere(part: &str) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for character in part.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wildcards_of_like_stand_for_themselves() {
        assert_eq!(like_anywhere(r"100%_a\b"), r"%100\%\_a\\b%");
    }

    #[test]
    fn sort_keys_fit_an_index_entry() {
        assert!(sort_key(&"😀".repeat(10_000)).len() < 2_600);
        assert_eq!(sort_key("Ärger "), "arger");
    }

    #[test]
    fn nul_is_replaced() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
    }
}
