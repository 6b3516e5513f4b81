//! Detects and decodes the encodings of chart files and file names.
//!
//! Old tools write charts as Shift-JIS, EUC-KR, GBK, UTF-16 or in a Windows code page. A byte order mark takes
//! precedence; valid UTF-8 is UTF-8; for anything else the detector of Firefox (`chardetng`) guesses.

use std::borrow::Cow;
use std::ffi::OsStr;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// The bytes of a file without its byte order mark. UTF-16, which the mark tells, is converted to UTF-8.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> Cow<'_, [u8]> {
    match Encoding::for_bom(bytes) {
        Some((encoding, length)) if encoding == UTF_8 => Cow::Borrowed(&bytes[length..]),
        Some((encoding, length)) => {
            let text = encoding.decode_without_bom_handling(&bytes[length..]).0;
            Cow::Owned(text.into_owned().into_bytes())
        }
        None => Cow::Borrowed(bytes),
    }
}

/// Decodes the texts of a file whose structure is ASCII: its metadata. Notes never depend on it: they are read
/// from bytes, as the games read them, since a wrong guess of the encoding would give another note hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextDecoder(&'static Encoding);

impl TextDecoder {
    /// Detects the encoding from all bytes of the file.
    pub(crate) fn detect(bytes: &[u8]) -> Self {
        let is_utf_8 = str::from_utf8(bytes).is_ok() || is_damaged_utf8(bytes);
        Self(if is_utf_8 { UTF_8 } else { detect(bytes) })
    }

    /// A text of the file. Invalid bytes become replacement characters.
    pub(crate) fn text(self, raw: &[u8]) -> Cow<'_, str> {
        self.0.decode_without_bom_handling(raw).0
    }
}

/// Whether most non-ASCII sequences are valid UTF-8, which is unlikely in any other encoding.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

/// The most likely encoding.
fn detect(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Decodes a file name. On Unix, where names are arbitrary bytes, the encoding of a name that is not UTF-8 is
/// detected, so that no file is ignored because of its name.
#[must_use]
pub fn decode_file_name(name: &OsStr) -> Cow<'_, str> {
    match name.to_str() {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(decode_os_name(name)),
    }
}

#[cfg(unix)]
fn decode_os_name(name: &OsStr) -> String {
    use std::os::unix::ffi::OsStrExt;

    let bytes = name.as_bytes();
    detect(bytes).decode_without_bom_handling(bytes).0.into_owned()
}

#[cfg(not(unix))]
fn decode_os_name(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// The encoding of those names in an archive that are not UTF-8.
pub(crate) struct EntryNameEncoding(&'static Encoding);

impl EntryNameEncoding {
    /// Detects the encoding from the concatenated names.
    pub(crate) fn detect(names: &[u8]) -> Self {
        Self(detect(names))
    }

    /// Decodes a name. If no encoding was detected, `code_page_437` decodes it, the encoding that the ZIP
    /// specification requires (APPNOTE.TXT, appendix D).
    pub(crate) fn decode(&self, raw: &[u8], code_page_437: impl FnOnce() -> Option<String>) -> String {
        if let Ok(name) = str::from_utf8(raw) {
            return name.to_owned();
        }
        let detected = self.0.decode_without_bom_handling_and_without_replacement(raw);
        detected
            .filter(|_| self.0 != WINDOWS_1252)
            .map(Cow::into_owned)
            .or_else(code_page_437)
            .unwrap_or_else(|| String::from_utf8_lossy(raw).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::SHIFT_JIS;

    use super::*;

    fn text(bytes: &[u8]) -> String {
        let bytes = without_byte_order_mark(bytes);
        TextDecoder::detect(&bytes).text(&bytes).into_owned()
    }

    #[test]
    fn damaged_utf_8_is_still_utf_8() {
        for expected in ["plain", "\u{a9}\u{ae}", "ｶﾀｶﾅ"] {
            assert_eq!(text(expected.as_bytes()), expected);
        }
        let mut damaged = "旋律と夜明け".as_bytes().to_vec();
        damaged.truncate(damaged.len() - 1);
        assert_eq!(text(&damaged), "旋律と夜明\u{fffd}");
    }

    #[test]
    #[cfg(unix)]
    fn file_names_of_other_encodings_are_decoded() {
        use std::os::unix::ffi::OsStrExt;

        assert_eq!(decode_file_name(OsStr::new("夜.osu")), "夜.osu");
        let name = "夜明けの航路.sm";
        assert_eq!(decode_file_name(OsStr::from_bytes(&SHIFT_JIS.encode(name).0)), name);
    }
}
