//! Texts of a chart file, for storage and display.

use chart_index_domain::clean;

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
}
