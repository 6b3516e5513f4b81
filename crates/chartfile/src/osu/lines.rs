//! The lines of an `.osu` file with the sections that they are in.

use crate::Refusal;
use crate::dotnet::{enumeration, int, trim, trim_end, trim_start};

/// The format version of files without a header: `LegacyDecoder.LATEST_VERSION`.
const LATEST_VERSION: i32 = 14;

/// `LegacyDecoder.Section`.
const SECTIONS: &[(&str, i32)] = &[
    ("General", 0),
    ("Editor", 1),
    ("Metadata", 2),
    ("Difficulty", 3),
    ("Events", 4),
    ("TimingPoints", 5),
    ("Colours", 6),
    ("HitObjects", 7),
    ("Variables", 8),
    ("Fonts", 9),
    ("CatchTheBeat", 10),
    ("Mania", 11),
];

/// A section, as far as a chart depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    General,
    Metadata,
    Difficulty,
    Events,
    TimingPoints,
    HitObjects,
    Other,
}

impl Section {
    /// The section with this name. A name that the game does not know begins the section with the number 0.
    fn named(name: &[u8]) -> Self {
        match enumeration(name, SECTIONS, false).unwrap_or(0) {
            0 => Self::General,
            2 => Self::Metadata,
            3 => Self::Difficulty,
            4 => Self::Events,
            5 => Self::TimingPoints,
            7 => Self::HitObjects,
            _ => Self::Other,
        }
    }
}

/// The format version: that of the first line with text, which is a header or the first line of the chart.
///
/// ppy/osu e9451fe7, `Decoder.GetDecoder`, `LegacyBeatmapDecoder.Register`.
pub(super) fn format_version(text: &[u8]) -> Result<i32, Refusal> {
    let mut lines = split_lines(text).map(trim);
    let Some(mut first) = lines.find(|line| !line.is_empty()) else {
        return Err(Refusal::undecodable("the file is empty"));
    };
    // The comparison of the game skips characters without a width, such as a second byte order mark.
    while let Some(rest) = first.strip_prefix("\u{feff}".as_bytes()) {
        first = rest;
    }
    if first.starts_with(b"{") {
        return Err(Refusal::undecodable("a chart in JSON"));
    }
    if !first.starts_with(b"osu file format v") {
        return Ok(LATEST_VERSION);
    }
    let version = first.rsplit(|&byte| byte == b'v').next().and_then(int);
    version.ok_or_else(|| Refusal::undecodable("the format version is not a number"))
}

/// The lines that the game reads, each with its section and without comments. It reads the header as well.
///
/// ppy/osu e9451fe7, `LegacyDecoder.ParseStreamInto`.
pub(super) fn section_lines(text: &[u8]) -> impl Iterator<Item = (Section, &[u8])> {
    let mut section = Section::General;
    split_lines(text).filter_map(move |line| {
        let start = trim_start(line);
        if start.is_empty() || start.starts_with(b"//") {
            return None;
        }
        // Titles may contain slashes.
        let line = trim_end(if section == Section::Metadata { line } else { without_comment(line) });
        match line {
            [b'[', name @ .., b']'] => {
                section = Section::named(name);
                None
            }
            _ => Some((section, line)),
        }
    })
}

/// `LegacyDecoder.StripComments`.
fn without_comment(line: &[u8]) -> &[u8] {
    if !line.contains(&b'/') {
        return line;
    }
    let comment = line.windows(2).position(|pair| pair == b"//");
    comment.map_or(line, |start| &line[..start])
}

/// The lines as `StreamReader.ReadLine` returns them: a line ends with a line feed, a carriage return, or both.
/// The empty line that this makes of both is skipped like any other.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// A line of the form `key: value`, without the white space around both: `LegacyDecoder.SplitKeyVal`.
pub(super) fn key_and_value(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|&byte| byte == b':') {
        Some(colon) => (trim(&line[..colon]), trim(&line[colon + 1..])),
        None => (trim(line), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_selects_the_version() {
        for (text, expected) in [
            ("osu file format v14", Some(14)),
            ("\n \r\n  osu file format v3  \n", Some(3)),
            ("\u{feff}osu file format v128", Some(128)),
            ("osu file format v9v4", Some(4)),
            ("osu file format v 7", Some(7)),
            ("[General]\nosu file format v3", Some(14)),
            ("osu file format", Some(14)),
            ("Osu file format v3", Some(14)),
            ("osu file format v", None),
            ("osu file format v14 // v", None),
            ("osu file format v4.5", None),
            ("{}", None),
            (" \n\n", None),
            ("", None),
        ] {
            assert_eq!(format_version(text.as_bytes()).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn sections_are_those_of_the_game() {
        for (header, expected) in [
            ("[HitObjects]", Section::HitObjects),
            ("[HitObjects] \u{3000}", Section::HitObjects),
            ("[HitObjects]// comment", Section::HitObjects),
            ("[ HitObjects ]", Section::HitObjects),
            ("[7]", Section::HitObjects),
            ("[Editor,Fonts]", Section::Other),
            ("[Editor,Metadata]", Section::Difficulty),
            ("[99]", Section::Other),
            ("[Colours]", Section::Other),
            // Not a name of the game: the section 0.
            ("[hitobjects]", Section::General),
            ("[Song]", Section::General),
            ("[]", Section::General),
            // Not a header.
            (" [HitObjects]", Section::Events),
            ("[HitObjects", Section::Events),
        ] {
            let text = format!("[Events]\n{header}\nx");
            let last = section_lines(text.as_bytes()).last();
            assert_eq!(last, Some((expected, &b"x"[..])), "{header:?}");
        }
    }

    #[test]
    fn comments_are_cut_outside_of_metadata() {
        for (section, line, expected) in [
            ("Difficulty", "CircleSize:7 // keys", Some("CircleSize:7")),
            ("Difficulty", "a / b", Some("a / b")),
            ("Difficulty", "//CircleSize:7", None),
            ("Difficulty", " \t// a", None),
            ("Difficulty", "\u{a0}", None),
            ("Metadata", "Title:a // b ", Some("Title:a // b")),
            ("Metadata", "// b", None),
            ("Metadata", "[Difficulty] // b", Some("[Difficulty] // b")),
        ] {
            let text = format!("[{section}]\n{line}");
            let last = section_lines(text.as_bytes()).last().map(|(_, line)| line);
            assert_eq!(last, expected.map(str::as_bytes), "{line:?}");
        }
    }

    #[test]
    fn lines_end_with_carriage_returns_and_line_feeds() {
        let lines: Vec<_> = section_lines(b"a\rb\r\nc\n\rd\n\ne\x0bf").map(|(_, line)| line).collect();
        assert_eq!(lines, [&b"a"[..], b"b", b"c", b"d", b"e\x0bf"]);
    }

    #[test]
    fn keys_end_at_the_first_colon() {
        for (line, key, value) in
            [("Title: a:b ", "Title", "a:b"), (" Mode :3", "Mode", "3"), ("Mode", "Mode", ""), (":", "", "")]
        {
            assert_eq!(key_and_value(line.as_bytes()), (key.as_bytes(), value.as_bytes()), "{line:?}");
        }
    }
}
