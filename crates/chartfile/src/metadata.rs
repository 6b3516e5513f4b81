//! Cleans the metadata of a chart for storage and display.

use chart_index_domain::ChartMetadata;
use rox::Metadata;
use rox::formats::RomanisedNames;

/// The maximum length of a title, artist, creator, difficulty or tag, in characters. The longest real ones have
/// a few hundred; longer ones are truncated rather than refused together with their chart.
pub(crate) const MAX_CHARACTERS: usize = 1_000;

/// The maximum number of tags of a chart; further ones are dropped. Real charts have up to about 150.
pub(crate) const MAX_TAGS: usize = 200;

/// Cleans the metadata that the decoder returns. Names and tags are truncated at [`MAX_CHARACTERS`].
pub(crate) fn chart_metadata(metadata: &Metadata, romanised: &RomanisedNames) -> ChartMetadata {
    let (title, artist) = (clean(&metadata.title), clean(&metadata.artist));
    ChartMetadata {
        title_romanised: differing(romanised.title.as_deref(), &title),
        artist_romanised: differing(romanised.artist.as_deref(), &artist),
        title,
        artist,
        creator: clean(&metadata.creator),
        difficulty: clean(&metadata.difficulty_name),
        tags: metadata
            .tags
            .iter()
            .map(|tag| clean(tag))
            .filter(|tag| !tag.is_empty())
            .take(MAX_TAGS)
            .collect(),
    }
}

fn differing(romanised: Option<&str>, name: &str) -> Option<String> {
    romanised.map(clean).filter(|romanised| !romanised.is_empty() && romanised != name)
}

/// Removes control characters (`PostgreSQL` cannot store NUL), trims white space, and truncates to
/// [`MAX_CHARACTERS`]. Line breaks and tabs become spaces.
pub(crate) fn clean(text: &str) -> String {
    let printable = text
        .chars()
        .map(|character| if character.is_whitespace() { ' ' } else { character })
        .filter(|character| !character.is_control());
    let cleaned: String = printable.skip_while(|&character| character == ' ').take(MAX_CHARACTERS).collect();
    cleaned.trim_end().to_owned()
}

/// The start of a decoder's message, which may quote any text of any length from the file.
pub(crate) fn excerpt(message: &str) -> String {
    const MAX_EXCERPT: usize = 200;
    let cleaned = clean(message);
    match cleaned.char_indices().nth(MAX_EXCERPT) {
        Some((end, _)) => format!("{}…", &cleaned[..end]),
        None => cleaned,
    }
}

/// Splits a list of tags: at commas if it has any, else at white space.
pub(crate) fn split_tags(list: &str) -> impl Iterator<Item = &str> {
    let by_comma = list.contains(',');
    list.split(move |character: char| if by_comma { character == ',' } else { character.is_whitespace() })
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
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
    fn tags_are_split_at_commas_or_else_at_spaces() {
        for (list, expected) in [
            (
                "chordjack, cj, hard-techno, electronic dance music",
                &["chordjack", "cj", "hard-techno", "electronic dance music"][..],
            ),
            ("one two  three", &["one", "two", "three"]),
            (" , a,,b ,", &["a", "b"]),
            ("  ", &[]),
        ] {
            assert_eq!(split_tags(list).collect::<Vec<_>>(), expected, "{list:?}");
        }
    }

    #[test]
    fn equal_romanised_name_is_omitted() {
        let metadata = Metadata { title: "旋律".into(), artist: "Ann".into(), ..Metadata::default() };
        let romanised = RomanisedNames { title: Some("Senritsu".into()), artist: Some("Ann\0".into()) };
        let cleaned = chart_metadata(&metadata, &romanised);
        assert_eq!((cleaned.title_romanised.as_deref(), cleaned.artist_romanised), (Some("Senritsu"), None));
    }

    #[test]
    fn tags_beyond_the_limit_are_dropped() {
        let tags = (0..MAX_TAGS + 50).map(|number| format!("tag{number}").into()).collect();
        let metadata = Metadata { tags, ..Metadata::default() };
        assert_eq!(chart_metadata(&metadata, &RomanisedNames::default()).tags.len(), MAX_TAGS);
    }
}
