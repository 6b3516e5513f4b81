//! The filter of a query as text, in which every value is quoted in one place.

use chart_index_domain::search::{Bounds, SearchQuery};

use crate::unsupported_query::UnsupportedQuery;
use crate::{chart_values, creator_codes, sort_keys};

/// Every condition of the query except its text, in the syntax of Meilisearch; empty if there is none.
pub(crate) fn from_query(query: &SearchQuery) -> Result<String, UnsupportedQuery> {
    let mut all = Vec::new();
    if !query.keys.is_empty() {
        all.push(any(query.keys.iter().map(|keys| equals("keys", &keys.get().to_string()))));
    }
    all.extend(query.source.map(|source| equals("sourceKind", source.as_str())));
    if let Some(part) = &query.creator {
        all.push(creator_contains(part)?);
    }
    for part in &query.excluded_creators {
        all.push(format!("NOT {}", creator_contains(part)?));
    }
    if has_names(query) {
        return Err(UnsupportedQuery::NameWords);
    }
    let tag = |tag: &String| equals(sort_keys::TAG_KEYS, &sort_keys::tag_key(tag));
    all.extend(query.tags.iter().map(tag));
    all.extend(query.excluded_tags.iter().map(|excluded| format!("NOT {}", tag(excluded))));
    all.extend(overlap("bpmMin", "bpmMax", query.bpm));
    all.extend(overlap("lengthMinMs", "lengthMaxMs", query.length_ms));
    all.extend(query.density_min.map(|min| format!("densityMax >= {min}")));
    let ranges = query.chart_conditions().map(|conditions| chart_values::ranges(&conditions)).transpose()?;
    if let Some(ranges) = ranges.filter(|ranges| !ranges.is_empty()) {
        all.push(any(ranges.iter().map(ToString::to_string)));
    }
    Ok(all.join(" AND "))
}

/// Whether chartsets have to match words in names, or must not.
fn has_names(query: &SearchQuery) -> bool {
    let excluded = [&query.excluded_titles, &query.excluded_artists];
    query.title.is_some() || query.artist.is_some() || excluded.iter().any(|names| !names.is_empty())
}

/// Any of the conditions. Never without one: Meilisearch has no filter that matches nothing.
fn any(conditions: impl Iterator<Item = String>) -> String {
    format!("({})", conditions.collect::<Vec<_>>().join(" OR "))
}

/// Equality, after Meilisearch has folded case and accents of both sides.
fn equals(attribute: &'static str, value: &str) -> String {
    format!("{attribute} = {}", quoted(value))
}

/// Part of the creator's name. Requires the feature `containsFilter`.
fn creator_contains(part: &str) -> Result<String, UnsupportedQuery> {
    let code = creator_codes::part_code(part).ok_or(UnsupportedQuery::CreatorTooLong)?;
    Ok(format!("creatorCodes CONTAINS {}", quoted(&code)))
}

/// The range between the two attributes overlaps the bounds, both ends inclusive.
fn overlap(low: &'static str, high: &'static str, bounds: Bounds) -> impl Iterator<Item = String> {
    // Rust formats numbers without exponents, which Meilisearch would not parse.
    let min = bounds.min.map(|min| format!("{high} >= {min}"));
    let max = bounds.max.map(|max| format!("{low} <= {max}"));
    min.into_iter().chain(max)
}

/// A value in quotes, with quotes and backslashes escaped. All text in filters passes through here.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{KeyCount, SourceKind};
    use proptest::prelude::*;

    use super::*;

    fn query() -> SearchQuery {
        SearchQuery::default()
    }

    #[test]
    fn filter_has_every_condition_of_the_query() {
        let keys = |counts: &[u8]| counts.iter().map(|&keys| KeyCount::try_from(keys).unwrap()).collect();
        let range = |min, max| Bounds { min, max };
        for (query, expected) in [
            (query(), ""),
            (SearchQuery { keys: keys(&[4]), ..query() }, r#"(keys = "4")"#),
            (SearchQuery { keys: keys(&[7, 4]), ..query() }, r#"(keys = "4" OR keys = "7")"#),
            (SearchQuery { source: Some(SourceKind::BetaPack), ..query() }, r#"sourceKind = "betaPack""#),
            (SearchQuery { creator: Some("A\"".into()), ..query() }, r#"creatorCodes CONTAINS "m1i2""#),
            (
                SearchQuery { excluded_creators: vec!["a\"".into(), "b".into()], ..query() },
                r#"NOT creatorCodes CONTAINS "m1i2" AND NOT creatorCodes CONTAINS "m2""#,
            ),
            (SearchQuery { tags: vec!["12".into()], ..query() }, r#"tagKeys = "x3132""#),
            (SearchQuery { excluded_tags: vec!["12".into()], ..query() }, r#"NOT tagKeys = "x3132""#),
            (SearchQuery { bpm: range(Some(180.5), None), ..query() }, "bpmMax >= 180.5"),
            (SearchQuery { bpm: range(Some(1.0), Some(2.0)), ..query() }, "bpmMax >= 1 AND bpmMin <= 2"),
            (SearchQuery { length_ms: range(None, Some(90_000.0)), ..query() }, "lengthMinMs <= 90000"),
            (SearchQuery { density_min: Some(1e22), ..query() }, "densityMax >= 10000000000000000000000"),
        ] {
            assert_eq!(from_query(&query).unwrap(), expected);
        }
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        for (text, expected) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            (r#"" OR 1=1"#, r#""\" OR 1=1""#),
            (r"\", r#""\\""#),
            (r#"\""#, r#""\\\"""#),
            ("it's 宙", "\"it's 宙\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    /// Parses quoted text as Meilisearch does: up to the first quote that is not escaped.
    fn unquote(text: &str) -> Option<(String, &str)> {
        let mut characters = text.strip_prefix('"')?.char_indices();
        let mut value = String::new();
        while let Some((position, character)) = characters.next() {
            match character {
                '"' => return Some((value, &text[position + 2..])),
                '\\' => value.push(characters.next()?.1),
                character => value.push(character),
            }
        }
        None
    }

    proptest! {
        #[test]
        fn text_never_ends_its_quotes(text in r#"(\\|"|'| OR 1=1|\PC){0,20}"#) {
            let filter = equals("a", &text);
            let (value, rest) = unquote(filter.strip_prefix("a = ").unwrap()).unwrap();
            prop_assert_eq!(value, text);
            prop_assert_eq!(rest, "");
        }
    }
}
