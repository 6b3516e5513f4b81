//! Strong entity tags, and the comparison of `If-None-Match` (RFC 9110, sections 8.8.3 and 13.1.2).

use std::fmt;
use std::str::FromStr;

use axum::http::HeaderValue;
use chart_index_domain::NoteHash;

/// The length to which the digest of a body is truncated: 128 bits do not collide by chance.
const CONTENT_TAG_BYTES: usize = 16;

/// A strong entity tag. Stored without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// The tag of a body: a digest of its bytes, so that all replicas send the same one.
    #[must_use]
    pub fn from_content(content: &[u8]) -> Self {
        let digest = blake3::hash(content).to_hex();
        Self(digest[..2 * CONTENT_TAG_BYTES].to_owned())
    }

    /// The tag without its quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag as a header value, in quotes.
    #[must_use]
    pub fn to_header_value(&self) -> HeaderValue {
        quoted(&self.0)
    }

    /// Whether an `If-None-Match` header, given as its lines, matches this tag.
    ///
    /// Uses weak comparison, as the RFC requires. A malformed header is ignored as a whole: a full response is
    /// always correct.
    #[must_use]
    pub(crate) fn is_listed_in(&self, lines: &[HeaderValue]) -> bool {
        if let [line] = lines
            && line.as_bytes().trim_ascii() == b"*"
        {
            return true;
        }
        let mut listed = false;
        for line in lines {
            match listed_tags(line.as_bytes()) {
                Some(tags) => listed |= tags.contains(&self.0.as_bytes()),
                None => return false,
            }
        }
        listed
    }
}

/// The opaque tags of one header line, without `W/` and quotes; `None` if it is malformed. Empty list elements
/// are allowed (RFC 9110, section 5.6.1).
fn listed_tags(line: &[u8]) -> Option<Vec<&[u8]>> {
    let mut tags = Vec::new();
    let mut rest = line;
    loop {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(tags);
        }
        let opaque = rest.strip_prefix(b"W/").unwrap_or(rest).strip_prefix(b"\"")?;
        let end = opaque.iter().position(|&byte| byte == b'"')?;
        let (tag, tail) = (&opaque[..end], opaque[end + 1..].trim_ascii_start());
        if !tag.iter().all(|&byte| is_tag_character(byte)) || !matches!(tail, [] | [b',', ..]) {
            return None;
        }
        tags.push(tag);
        rest = tail;
    }
}

#[expect(clippy::expect_used, reason = "every constructor of a tag ensures visible ASCII")]
fn quoted(tag: &str) -> HeaderValue {
    let quoted = [b"\"", tag.as_bytes(), b"\""].concat();
    HeaderValue::try_from(quoted).expect("an entity tag is visible ASCII")
}

/// `etagc` of RFC 9110.
const fn is_tag_character(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)
}

impl From<NoteHash> for EntityTag {
    /// The tag of a ROX file is its note hash, because the bytes of a hash never change.
    fn from(hash: NoteHash) -> Self {
        Self(hash.to_string())
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl FromStr for EntityTag {
    type Err = MalformedEntityTag;

    /// Parses the output of [`EntityTag::as_str`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed = text.bytes().all(|byte| byte.is_ascii() && is_tag_character(byte));
        if well_formed && !text.is_empty() { Ok(Self(text.to_owned())) } else { Err(MalformedEntityTag) }
    }
}

/// The text is not a valid entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entity tag is empty or contains other characters than visible ASCII without quotes")]
pub struct MalformedEntityTag;

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(lines: &[&[u8]]) -> bool {
        let lines: Vec<_> = lines.iter().map(|line| HeaderValue::from_bytes(line).unwrap()).collect();
        EntityTag("abc".to_owned()).is_listed_in(&lines)
    }

    #[test]
    fn if_none_match_accepts_lists_weak_tags_and_a_star() {
        for line in [
            &b"\"abc\""[..],
            b"W/\"abc\"",
            b"*",
            b" * ",
            b"\"x\", \"abc\"",
            b"\"x\",W/\"abc\",\"y\"",
            b"\"a,b\" , \"abc\"",
            b",, \"abc\" ,",
            b"\"\", \"abc\"",
            b"\"\xff\"\t,\t\"abc\"",
        ] {
            assert!(matches(&[line]), "{}", line.escape_ascii());
        }
        assert!(matches(&[b"\"x\"", b"\"abc\""]), "several header lines are one list");
    }

    #[test]
    fn other_tags_and_malformed_headers_do_not_match() {
        for line in [
            &b""[..],
            b"\"x\"",
            b"\"ABC\"",
            b"\"abc-gzip\"",
            b"\"abc,\"",
            b"abc",
            b"\"abc",
            b"abc\"",
            b"w/\"abc\"",
            b"W/ \"abc\"",
            b"\"abc\" \"x\"",
            b"\"abc\"x",
            b"\"abc\", x",
            b"\"abc\", *",
            b"\"a b\", \"abc\"",
            b"**",
        ] {
            assert!(!matches(&[line]), "{}", line.escape_ascii());
        }
        assert!(!matches(&[]));
        assert!(!matches(&[b"\"abc\"", b"x"]), "one malformed line invalidates the header");
        assert!(!matches(&[b"*", b"*"]), "a star must be the only value");
    }

    #[test]
    fn content_tag_depends_on_the_bytes_and_round_trips() {
        let tag = EntityTag::from_content(b"{}");
        insta::assert_snapshot!(tag, @r#""6e46dd10defc9b56c29a6ec56b508c21""#);
        assert_ne!(tag, EntityTag::from_content(b"{} "));
        assert_eq!(tag.as_str().parse(), Ok(tag.clone()));
        assert_eq!(tag.to_header_value(), format!("\"{}\"", tag.as_str()));
    }

    #[test]
    fn tag_is_visible_ascii_without_quotes() {
        for text in ["", "a b", "a\"b", "é", "a\n"] {
            assert_eq!(text.parse::<EntityTag>(), Err(MalformedEntityTag), "{text:?}");
        }
    }
}
