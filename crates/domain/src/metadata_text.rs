//! Cleans the text of chart files for storage and display.

use crate::{ChartMetadata, MAX_CHART_TAGS};

/// The maximum length of a title, artist, creator, difficulty or tag, in characters. The longest real ones have
/// a few hundred; longer ones are truncated rather than refused together with their chart.
pub const MAX_CHARACTERS: usize = 1_000;

/// Removes control characters (`PostgreSQL` cannot store NUL), trims white space, and truncates to
/// [`MAX_CHARACTERS`]. Line breaks and tabs become spaces.
#[must_use]
pub fn clean(text: &str) -> String {
    let printable = text
        .chars()
        .map(|character| if character.is_whitespace() { ' ' } else { character })
        .filter(|character| !character.is_control());
    let cleaned: String = printable.skip_while(|&character| character == ' ').take(MAX_CHARACTERS).collect();
    cleaned.trim_end().to_owned()
}

impl ChartMetadata {
    /// Cleans every text ([`clean`]), and drops empty tags, those above [`MAX_CHART_TAGS`], and romanised names
    /// that are empty or the same.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let (title, artist) = (clean(&self.title), clean(&self.artist));
        let tags = self.tags.iter().map(|tag| clean(tag)).filter(|tag| !tag.is_empty());
        Self {
            title_romanised: differing(self.title_romanised.as_deref(), &title),
            artist_romanised: differing(self.artist_romanised.as_deref(), &artist),
            title,
            artist,
            creator: clean(&self.creator),
            difficulty: clean(&self.difficulty),
            tags: tags.take(MAX_CHART_TAGS).collect(),
        }
    }
}

fn differing(romanised: Option<&str>, name: &str) -> Option<String> {
    romanised.map(clean).filter(|romanised| !romanised.is_empty() && romanised != name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_control_characters_and_is_truncated() {
        let long = "音".repeat(MAX_CHARACTERS + 1);
        for (text, expected) in [
            ("  Title ", "Title"),
            ("a\0b\u{7}c\u{85}\u{9f}d", "abc d"),
            ("one\r\ntwo\tthree", "one  two three"),
            ("\0 \u{1} padded", "padded"),
            ("", ""),
            (&long, &long[..long.len() - '音'.len_utf8()]),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn equal_romanised_name_is_omitted() {
        let metadata = ChartMetadata {
            title: "旋律".into(),
            artist: "Ann".into(),
            title_romanised: Some("Senritsu".into()),
            artist_romanised: Some("Ann\0".into()),
            ..ChartMetadata::default()
        };
        let cleaned = metadata.cleaned();
        assert_eq!((cleaned.title_romanised.as_deref(), cleaned.artist_romanised), (Some("Senritsu"), None));
    }

    #[test]
    fn tags_beyond_the_limit_are_dropped() {
        let tags = (0..MAX_CHART_TAGS + 50).map(|number| format!("tag{number}")).collect();
        let metadata = ChartMetadata { tags, ..ChartMetadata::default() };
        assert_eq!(metadata.cleaned().tags.len(), MAX_CHART_TAGS);
    }

    #[test]
    fn cleaned_text_stays_as_it_is() {
        let cut = format!("{} x", "x".repeat(MAX_CHARACTERS - 1));
        let metadata = ChartMetadata {
            title: cut,
            creator: "\u{3000}a\u{85}\nb\0".into(),
            tags: vec![" ".into(), "b ".into()],
            ..ChartMetadata::default()
        };
        let cleaned = metadata.cleaned();
        assert_eq!(cleaned.cleaned(), cleaned);
        assert_eq!(cleaned.tags, ["b"]);
    }
}
