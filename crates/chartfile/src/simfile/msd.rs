//! The tags of a simfile, `#NAME:parameter:parameter;`.
//!
//! The rules are those of `MsdFile::ReadBuf` (itgmania 5d4f9dcb, MsdFile.cpp), which reads bytes: `//` starts a
//! comment, a backslash escapes the next byte, and a `#` that is the first on its line ends a tag without `;`.

use std::borrow::Cow;

use crate::Refusal;
use crate::text_encoding::TextDecoder;

/// The maximum number of parameters of a simfile. Real ones have a few thousand.
const MAX_PARAMETERS: usize = 500_000;

/// The tags of a file, in order.
#[derive(Debug, Default)]
pub(super) struct Tags<'a> {
    parameters: Vec<Parameter<'a>>,
    /// The place of the name of each tag among the parameters.
    names: Vec<usize>,
}

/// A tag: its name and its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'a, 'b>(&'b [Parameter<'a>]);

/// A parameter as it is in the file, between its delimiters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parameter<'a> {
    pub(super) raw: &'a [u8],
    has_comments: bool,
    has_escapes: bool,
    /// Whether the next tag ends it, in which case the game trims its end.
    is_trimmed: bool,
}

impl<'a> Parameter<'a> {
    /// The text without comments and escapes.
    pub(super) fn text(&self) -> Cow<'a, [u8]> {
        if !self.has_comments && !self.has_escapes {
            return Cow::Borrowed(self.raw);
        }
        let mut text = unescaped(self.raw);
        if self.is_trimmed {
            text.truncate(trim_end(&text).len());
        }
        Cow::Owned(text)
    }

    /// The text without escapes, for a reader that passes over comments: with them, unless they could contain
    /// what looks like a cell in braces.
    pub(super) fn text_with_comments(&self) -> Cow<'a, [u8]> {
        let is_rebuilt = self.has_escapes || self.has_comments && self.raw.contains(&b'{');
        if is_rebuilt { self.text() } else { Cow::Borrowed(self.raw) }
    }

    /// The text for display. In some encodings a byte of a character equals a backslash, which escapes what
    /// follows for the game; here the parameter ends where it ends after decoding.
    pub(super) fn display(&self, texts: TextDecoder) -> String {
        let decoded = unescaped(texts.text(self.raw).as_bytes());
        String::from_utf8_lossy(&decoded).trim().to_owned()
    }
}

impl<'a> Tag<'a, '_> {
    /// The name in upper case, as far as it is ASCII.
    pub(super) fn name(&self) -> Vec<u8> {
        self.parameter(0).text().to_ascii_uppercase()
    }

    /// A parameter, the first of which is 1; empty if the tag has fewer.
    pub(super) fn parameter(&self, index: usize) -> Parameter<'a> {
        self.0.get(index).copied().unwrap_or_default()
    }

    /// The number of parameters, with the name.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Tags<'a> {
    /// Reads the tags of a file.
    ///
    /// # Errors
    /// There are more parameters than a file may have.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let mut tags = Self::default();
        let mut at = 0;
        while let Some(start) = next_tag(bytes, at) {
            tags.names.push(tags.parameters.len());
            at = tags.read_tag(bytes, start)?;
        }
        Ok(tags)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Tag<'a, '_>> {
        let ends = self.names.iter().skip(1).copied().chain([self.parameters.len()]);
        self.names.iter().zip(ends).map(|(&start, end)| Tag(&self.parameters[start..end]))
    }

    /// Reads the tag whose name starts at `start`, and returns the position after it.
    fn read_tag(&mut self, bytes: &'a [u8], mut start: usize) -> Result<usize, Refusal> {
        let mut parameter = Parameter::default();
        let mut at = start;
        loop {
            at += bytes[at..]
                .iter()
                .position(|&byte| IS_SPECIAL[usize::from(byte)])
                .unwrap_or(bytes.len() - at);
            match bytes.get(at) {
                Some(b'/') if bytes.get(at + 1) == Some(&b'/') => {
                    parameter.has_comments = true;
                    at = line_end(bytes, at);
                }
                Some(b'\\') => {
                    parameter.has_escapes = true;
                    at = bytes.len().min(at + 2);
                }
                Some(b'#') if is_first_on_line(&bytes[start..at]) => {
                    let raw = trim_end(&bytes[start..at]);
                    self.push(Parameter { raw, is_trimmed: true, ..parameter })?;
                    return Ok(at);
                }
                Some(b'/' | b'#') => at += 1,
                Some(b':') => {
                    self.push(Parameter { raw: &bytes[start..at], ..parameter })?;
                    (start, at, parameter) = (at + 1, at + 1, Parameter::default());
                }
                end => {
                    self.push(Parameter { raw: &bytes[start..at], ..parameter })?;
                    return Ok(at + usize::from(end.is_some()));
                }
            }
        }
    }

    fn push(&mut self, parameter: Parameter<'a>) -> Result<(), Refusal> {
        if self.parameters.len() == MAX_PARAMETERS {
            return Err(Refusal::DecodingLimit { what: "tags" });
        }
        self.parameters.push(parameter);
        Ok(())
    }
}

/// The bytes that mean something in a tag.
const IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut index = 0;
    while index < 5 {
        table[b"#:;/\\"[index] as usize] = true;
        index += 1;
    }
    table
};

/// The start of the name of the next tag from `at` on, which is not within a tag.
fn next_tag(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|byte| matches!(byte, b'#' | b'/' | b'\\'))?;
        match bytes[at] {
            b'#' => return Some(at + 1),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = line_end(bytes, at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The position of the next line feed, which does not belong to a comment.
fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Whether there are only blanks between the last line end in `before`, or its start, and its end.
fn is_first_on_line(mut before: &[u8]) -> bool {
    loop {
        match before {
            [] | [.., b'\r' | b'\n'] => return true,
            // An escaped blank.
            [rest @ .., b'\\', b' ' | b'\t'] if !rest.ends_with(b"\\") => before = rest,
            [rest @ .., b' ' | b'\t'] => before = rest,
            _ => return false,
        }
    }
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !b" \t\r\n".contains(byte)).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// A parameter without comments and escapes, up to its end.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at).filter(|byte| !matches!(byte, b':' | b';')) {
        if byte == b'/' && raw.get(at + 1) == Some(&b'/') {
            at = line_end(raw, at);
            continue;
        }
        at += usize::from(byte == b'\\');
        text.extend(raw.get(at));
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<Vec<String>> {
        let tags = Tags::read(text.as_bytes()).unwrap();
        let text = |parameter: &Parameter<'_>| String::from_utf8(parameter.text().into_owned()).unwrap();
        tags.iter().map(|tag| tag.0.iter().map(text).collect()).collect()
    }

    #[test]
    fn tags_are_read_as_in_the_game() {
        for (text, expected) in [
            ("#A:b:c;#D;", vec![vec!["A", "b", "c"], vec!["D"]]),
            ("x;#A:b; y #C:;", vec![vec!["A", "b"], vec!["C", ""]]),
            // A missing semicolon: the next tag begins the line.
            ("#A:b\r\n  \t#C:d", vec![vec!["A", "b"], vec!["C", "d"]]),
            ("#A:b #C:d;", vec![vec!["A", "b #C", "d"]]),
            ("#A:#B:c;", vec![vec!["A", ""], vec!["B", "c"]]),
            ("#A:b\n\\ #C:d;", vec![vec!["A", "b"], vec!["C", "d"]]),
            ("#A:b // c\n#C:d;", vec![vec!["A", "b"], vec!["C", "d"]]),
            ("#A:b\n\\\\ #C:d;", vec![vec!["A", "b\n\\ #C", "d"]]),
            // Comments.
            ("//#A:b;\n#C:d//;\n e;", vec![vec!["C", "d\n e"]]),
            ("#A:b/c/;", vec![vec!["A", "b/c/"]]),
            // Escapes, also outside of tags.
            (r"#A\:b:c\;d\\:\//e;", vec![vec!["A:b", r"c;d\", "//e"]]),
            ("\\#A;#B:c\\", vec![vec!["B", "c"]]),
            ("# A :b;", vec![vec![" A ", "b"]]),
            ("#", vec![vec![""]]),
        ] {
            assert_eq!(tags(text), expected, "{text:?}");
        }
    }
}
