//! White space, numbers and enumerations as .NET 8 reads them: osu! and Quaver are written for it. Text is
//! bytes of UTF-8, valid or not.

use std::str::FromStr;

/// How a culture writes numbers.
pub(crate) struct NumberFormat {
    pub(crate) group_separator: u8,
    pub(crate) infinity: &'static str,
    pub(crate) not_a_number: &'static str,
}

/// `NumberFormatInfo.InvariantInfo`.
pub(crate) const INVARIANT: NumberFormat =
    NumberFormat { group_separator: b',', infinity: "Infinity", not_a_number: "NaN" };

/// `int.Parse` with `NumberStyles.Integer`.
pub(crate) fn int(text: &[u8]) -> Option<i32> {
    match short_digits(text) {
        Some(value) => i32::try_from(value).ok(),
        None => integer(text),
    }
}

/// `ulong.Parse` with `NumberStyles.Integer`.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    integer(text)
}

fn integer<T: FromStr>(text: &[u8]) -> Option<T> {
    // After the sign only digits are left, as in .NET.
    str::from_utf8(trim_number(text)).ok()?.parse().ok()
}

/// `float.Parse` with `NumberStyles.Float` and `AllowThousands`, its default.
#[expect(clippy::cast_precision_loss, reason = "seven digits are exact")]
pub(crate) fn single(text: &[u8], format: &NumberFormat) -> Option<f32> {
    short_digits(text).map(|value| value as f32).or_else(|| float(text, format))
}

/// `double.Parse` with `NumberStyles.Float` and `AllowThousands`, its default.
pub(crate) fn double(text: &[u8], format: &NumberFormat) -> Option<f64> {
    short_digits(text).map(f64::from).or_else(|| float(text, format))
}

/// A number of one to seven digits: most are.
fn short_digits(text: &[u8]) -> Option<u32> {
    let append = |value, &digit: &u8| digit.is_ascii_digit().then(|| 10 * value + u32::from(digit - b'0'));
    if matches!(text.len(), 1..=7) { text.iter().try_fold(0, append) } else { None }
}

fn float<T: FromStr>(text: &[u8], format: &NumberFormat) -> Option<T> {
    let number = trim_number(text);
    if number.iter().all(|&byte| is_number_byte(byte)) {
        // For these bytes .NET and Rust have the same grammar.
        return str::from_utf8(number).ok()?.parse().ok();
    }
    if let Some(digits) = without_groups(number, format.group_separator) {
        return digits.parse().ok();
    }
    symbol(str::from_utf8(text).ok()?.trim(), format)?.parse().ok()
}

const fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')
}

/// The number without its group separators, which may stand anywhere between the first digit and the decimal
/// point or the exponent.
fn without_groups(number: &[u8], separator: u8) -> Option<String> {
    let is_allowed = |&byte: &u8| byte == separator || is_number_byte(byte);
    let first_digit = number.iter().position(u8::is_ascii_digit)?;
    let integer_end =
        number.iter().position(|byte| matches!(byte, b'.' | b'e' | b'E')).unwrap_or(number.len());
    let separators_fit = number.iter().position(|&byte| byte == separator)? > first_digit
        && number.iter().rposition(|&byte| byte == separator)? < integer_end;
    let digits = number.iter().filter(|&&byte| byte != separator).map(|&byte| char::from(byte));
    (separators_fit && number.iter().all(is_allowed)).then(|| digits.collect())
}

/// Rust's name of an infinity or of a value that is not a number.
fn symbol(text: &str, format: &NumberFormat) -> Option<&'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.eq_ignore_ascii_case(format.infinity) {
        Some(if text.starts_with('-') { "-inf" } else { "inf" })
    } else {
        unsigned.eq_ignore_ascii_case(format.not_a_number).then_some("nan")
    }
}

/// A number without the white space around it, and without the zero bytes that .NET allows after it.
fn trim_number(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., 0] = text {
        text = rest;
    }
    while let [first, rest @ ..] = text
        && is_number_space(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_number_space(*last)
    {
        text = rest;
    }
    text
}

/// `Number.IsWhite`.
const fn is_number_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// `Enum.TryParse`: a number, or names separated by commas, whose values are united. White space around them
/// does not count.
pub(crate) fn enumeration(text: &[u8], names: &[(&str, i32)], ignores_case: bool) -> Option<i32> {
    let is_equal = |name: &str, text: &[u8]| {
        if ignores_case { name.as_bytes().eq_ignore_ascii_case(text) } else { name.as_bytes() == text }
    };
    let value =
        |name: &[u8]| names.iter().find(|(known, _)| is_equal(known, trim(name))).map(|(_, value)| value);
    let text = trim(text);
    if let [b'0'..=b'9' | b'-' | b'+', ..] = text {
        return int(text);
    }
    text.split(|&byte| byte == b',').try_fold(0, |united, name| Some(united | value(name)?))
}

/// `string.Trim()`.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    trim_start(trim_end(text))
}

/// `string.TrimStart()`.
pub(crate) fn trim_start(mut text: &[u8]) -> &[u8] {
    while let Some(length) = white_space(text, |length| text.get(..length)) {
        text = &text[length..];
    }
    text
}

/// `string.TrimEnd()`.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let Some(length) = white_space(text, |length| text.get(text.len().checked_sub(length)?..)) {
        text = &text[..text.len() - length];
    }
    text
}

/// The length of the white space character at one end of a text. `char.IsWhiteSpace` has those of Unicode, of
/// up to three bytes.
fn white_space<'a>(text: &'a [u8], at_end: impl Fn(usize) -> Option<&'a [u8]>) -> Option<usize> {
    let is_white_space =
        |bytes| str::from_utf8(bytes).is_ok_and(|text| text.chars().all(char::is_whitespace));
    let [edge] = at_end(1)? else { return None };
    if edge.is_ascii() {
        return is_number_space(*edge).then_some(1);
    }
    (2..=3.min(text.len())).find(|&length| at_end(length).is_some_and(is_white_space))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number.Parsing.cs of dotnet/runtime (release/8.0), `TryParseNumber`, `TryParseFloat`.
    #[test]
    fn numbers_are_read_as_in_dotnet() {
        for (text, expected) in [
            ("1", Some(1.0)),
            ("12345678", Some(12_345_678.0)),
            (" \t\u{b}1.5\r\n", Some(1.5)),
            ("+5.", Some(5.0)),
            ("-.5", Some(-0.5)),
            ("2E+03", Some(2000.0)),
            ("1e-1\0\0", Some(0.1)),
            ("1,000", Some(1000.0)),
            ("1,,0,.5", Some(10.5)),
            ("1,e1", Some(10.0)),
            ("1e400", Some(f64::INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("\u{a0}-infinity\u{3000}", Some(f64::NEG_INFINITY)),
            ("+INFINITY", Some(f64::INFINITY)),
            ("", None),
            (" ", None),
            (".", None),
            ("- 1", None),
            ("--1", None),
            ("1 2", None),
            ("1e", None),
            ("1e1.5", None),
            (",1", None),
            ("1.0,0", None),
            ("1e1,0", None),
            ("-,1", None),
            ("1\0 ", None),
            ("\u{a0}1", None),
            ("0x10", None),
            ("1f", None),
            ("inf", None),
            ("nan ", Some(f64::NAN)),
            ("-NaN", Some(f64::NAN)),
            ("٣", None),
        ] {
            let read = double(text.as_bytes(), &INVARIANT);
            assert_eq!(read.map(f64::to_bits), expected.map(f64::to_bits), "{text:?}");
        }
        assert_eq!(single(b"1234567", &INVARIANT), Some(1_234_567.0));
        assert_eq!(single(b"16777217", &INVARIANT), Some(16_777_216.0), "in single precision");
    }

    /// Number.Parsing.cs, `TryParseBinaryIntegerStyle`.
    #[test]
    fn integers_are_read_as_in_dotnet() {
        for (text, expected) in [
            ("12", Some(12)),
            (" +12\t", Some(12)),
            ("-0", Some(0)),
            ("-2147483648", Some(i32::MIN)),
            ("007\0", Some(7)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("1.0", None),
            ("1e3", None),
            ("1,000", None),
            ("- 1", None),
            ("+", None),
            ("", None),
        ] {
            assert_eq!(int(text.as_bytes()), expected, "{text:?}");
        }
    }

    /// Enum.cs, `TryParse`, `TryParseByName`.
    #[test]
    fn enumerations_are_names_or_numbers() {
        const NAMES: &[(&str, i32)] = &[("A", 1), ("Bc", 2)];
        for (text, exact, ignoring_case) in [
            ("A", Some(1), Some(1)),
            (" Bc ", Some(2), Some(2)),
            ("bC", None, Some(2)),
            ("A, Bc", Some(3), Some(3)),
            ("A,", None, None),
            ("", None, None),
            ("7", Some(7), Some(7)),
            ("-1 ", Some(-1), Some(-1)),
            ("1x", None, None),
        ] {
            assert_eq!(enumeration(text.as_bytes(), NAMES, false), exact, "{text:?}");
            assert_eq!(enumeration(text.as_bytes(), NAMES, true), ignoring_case, "{text:?}");
        }
    }

    #[test]
    fn white_space_is_that_of_unicode() {
        for (text, expected) in [
            (&b" \x0b a b\t\x0c"[..], &b"a b"[..]),
            ("\u{85}\u{a0}é\u{2028}\u{3000}".as_bytes(), "é".as_bytes()),
            ("\u{200b}a\u{feff}".as_bytes(), "\u{200b}a\u{feff}".as_bytes()),
            (b"\xa0a\xa0", b"\xa0a\xa0"),
            (b"\x1ca\x1c", b"\x1ca\x1c"),
            (b" \t", b""),
            (b"", b""),
        ] {
            assert_eq!(trim(text), expected, "{text:?}");
        }
    }
}
