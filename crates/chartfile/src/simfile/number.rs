//! Numbers of simfiles.

use crate::Refusal;

/// A number: in the single precision of the game, which decides on rows, comparisons and warps, and in double
/// precision for times (docs/formats/note-hash.md, "Simfiles").
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number {
    pub(super) single: f32,
    pub(super) double: f64,
}

impl Number {
    /// The number at the start of a text, after white space, as `strtof` reads it; 0 if there is none or it is
    /// not finite (itgmania 5d4f9dcb, RageUtil.cpp, `StringToFloat`).
    ///
    /// # Errors
    /// The number is hexadecimal, which no program writes.
    pub(super) fn read(text: &[u8]) -> Result<Self, Refusal> {
        let text = text.trim_ascii_start();
        let text = text.strip_prefix(b"\x0b").map_or(text, <[u8]>::trim_ascii_start);
        let number = str::from_utf8(&text[..length(text)?]).unwrap_or_default();
        let single: f32 = number.parse().unwrap_or_default();
        let double = number.parse().unwrap_or_default();
        Ok(if single.is_finite() { Self { single, double } } else { Self::from(0.0) })
    }
}

impl From<f32> for Number {
    fn from(single: f32) -> Self {
        Self { single, double: single.into() }
    }
}

/// The length of the decimal number at the start of a text.
fn length(text: &[u8]) -> Result<usize, Refusal> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = |at: usize| usize::from(matches!(text.get(at), Some(b'+' | b'-')));
    let start = sign(0);
    let whole = digits(start);
    let mut end = start + whole;
    let is_hexadecimal = |text: &[u8]| matches!(text, [b'0', b'x' | b'X', b'.', digit, ..] | [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
    if is_hexadecimal(&text[start..]) {
        return Err(Refusal::undecodable("hexadecimal number"));
    }
    let mut count = whole;
    if text.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        count += fraction;
        end += 1 + fraction;
    }
    if count == 0 {
        return Ok(0);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let exponent = end + 1 + sign(end + 1);
        let length = text.get(exponent..).map_or(0, |_| digits(exponent));
        end = if length > 0 { exponent + length } else { end };
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "the numbers are small")]
    fn numbers_are_read_as_far_as_they_are_numbers() {
        for (text, expected) in [
            ("120", 120.0),
            (" \t\r\n\x0b 1.5", 1.5),
            ("120.000 BPM", 120.0),
            ("-.5e1x", -5.0),
            ("+3.", 3.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("1e-1", 0.1),
            ("1_000", 1.0),
            ("1,5", 1.0),
            ("", 0.0),
            (".", 0.0),
            ("-", 0.0),
            ("e5", 0.0),
            ("inf", 0.0),
            ("nan", 0.0),
            ("1e39", 0.0),
            ("\u{e9}", 0.0),
            ("0x", 0.0),
        ] {
            let number = Number::read(text.as_bytes()).unwrap();
            assert_eq!(number, Number { single: expected as f32, double: expected }, "{text:?}");
        }
        assert_eq!(Number::read(b"0.1").unwrap(), Number { single: 0.1, double: 0.1 });
        assert!(Number::read(b"0x10").is_err());
    }
}
