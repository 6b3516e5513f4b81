//! Text of others on terminals and in logs: names of files and of entries of archives, and what other servers
//! say. Its control characters must neither reach a terminal nor begin a line.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with its control characters as escape sequences of Rust, such as `\u{1b}` and `\n`.
#[must_use]
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    replace_controls(text, |escaped, control| escaped.extend(control.escape_default()))
}

/// The same for a line of JSON, with escape sequences of JSON: it has the same value afterwards.
#[must_use]
pub fn escape_controls_in_json(line: &str) -> Cow<'_, str> {
    replace_controls(line, |escaped, control| {
        // All of these characters have four digits.
        let _ = write!(escaped, "\\u{:04x}", u32::from(control));
    })
}

fn replace_controls(text: &str, replace: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_control(character) { replace(&mut escaped, character) } else { escaped.push(character) }
    }
    Cow::Owned(escaped)
}

/// Control characters (C0, DEL, C1), separators of lines, and what changes the direction of text.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_letters_are_not() {
        for (text, escaped) in [
            ("旋律 – Ärger 🎵 '\"\\", "旋律 – Ärger 🎵 '\"\\"),
            ("a\x1b]0;b\x07c", "a\\u{1b}]0;b\\u{7}c"),
            ("a\r\n\tb", "a\\r\\n\\tb"),
            ("\x7f\u{9b}\u{202e}\u{2066}\u{2028}", "\\u{7f}\\u{9b}\\u{202e}\\u{2066}\\u{2028}"),
        ] {
            assert_eq!(escape_controls(text), escaped);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let line = "{\"a\":\"\u{9b}\u{202e}\x7f\u{e9}\"}";
        let escaped = escape_controls_in_json(line);
        assert_eq!(escaped, "{\"a\":\"\\u009b\\u202e\\u007f\u{e9}\"}");
    }
}
