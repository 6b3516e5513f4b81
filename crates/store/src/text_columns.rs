//! Text as the columns can hold it.

use std::borrow::Cow;

/// A text without the character NUL, which PostgreSQL cannot store. Hostile files hold it.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
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
    fn nul_is_replaced() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
    }
}
