//! Text in the form that PostgreSQL accepts.

use std::borrow::Cow;

/// Replaces NUL, which PostgreSQL cannot store, with U+FFFD. Malicious files contain it.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The `LIKE` pattern for every text that contains `part`.
pub(crate) fn contains_pattern(part: &str) -> String {
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
    fn like_wildcards_are_escaped() {
        assert_eq!(contains_pattern(r"100%_a\b"), r"%100\%\_a\\b%");
    }

    #[test]
    fn nul_is_replaced() {
        assert_eq!(replace_nul("a\0b"), "a\u{fffd}b");
    }
}
