//! Encodes and decodes lower-case hexadecimal.

use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes `bytes` into `buffer`, which has to have twice their length, and returns it as text.
///
/// A table look-up per digit: list responses contain many ids, and formatting them byte by byte takes longer
/// than serialising all other fields of a chartset.
#[must_use]
pub fn encode<'a>(bytes: &[u8], buffer: &'a mut [u8]) -> &'a str {
    for (pair, byte) in buffer.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
    // ASCII is valid UTF-8.
    std::str::from_utf8(buffer).unwrap_or_default()
}

/// Appends the digits of `bytes` to `text`.
pub fn push(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// Decodes exactly `N` bytes. `None` for another length, and for anything but lower-case digits.
#[must_use]
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

/// Decodes any number of bytes. `None` for an odd number of digits, and for anything but lower-case digits.
#[must_use]
pub fn decode_any(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?));
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The JSON Schema of the digits of this many bytes.
pub(crate) fn schema(bytes: usize) -> RefOr<Schema> {
    let pattern = format!("^[0-9a-f]{{{}}}$", 2 * bytes);
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_round_trips() {
        let bytes: [u8; 256] = std::array::from_fn(|byte| u8::try_from(byte).unwrap());
        let mut buffer = [0; 512];
        let text = encode(&bytes, &mut buffer);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(decode(text), Some(bytes));
        let mut pushed = String::from("x");
        push(&mut pushed, &bytes);
        assert_eq!(pushed, format!("x{text}"));
    }

    #[test]
    fn only_lower_case_digits_are_decoded() {
        for text in ["", "0", "000", "0A", "0g", " 0", "é"] {
            assert_eq!(decode::<1>(text), None, "{text:?}");
        }
    }
}
