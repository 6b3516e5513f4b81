//! Filters as a tree, and their text, in which every value is quoted in one place.

use std::fmt::{self, Write as _};

use chart_index_domain::search::{Bounds, SearchQuery};

use crate::chart_values::Range;
use crate::unsupported_query::UnsupportedQuery;
use crate::{chart_values, creator_codes, sort_keys};

/// A condition on the documents of an index. Attributes are constants; values may contain any text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    /// All of the conditions; true when there are none.
    And(Vec<Filter>),
    /// Any of the conditions. Never empty: Meilisearch has no filter that matches nothing.
    Or(Vec<Filter>),
    Compare {
        attribute: &'static str,
        /// `>=` or `<=`.
        comparison: &'static str,
        value: f64,
    },
    /// One value of the attribute is in the range, both ends inclusive.
    Range(Range),
    /// Equality, after Meilisearch has folded case and accents of both sides.
    Equals { attribute: &'static str, value: String },
    /// The condition is not met.
    Not(Box<Filter>),
    /// A substring, folded likewise. Requires the feature `containsFilter`.
    Contains { attribute: &'static str, part: String },
}

impl Filter {
    /// Every condition of the query except its text.
    pub(crate) fn from_query(query: &SearchQuery) -> Result<Self, UnsupportedQuery> {
        let mut all = Vec::new();
        if !query.keys.is_empty() {
            let keys = query.keys.iter().map(|keys| keys.get().to_string());
            all.push(Self::Or(keys.map(|value| Self::Equals { attribute: "keys", value }).collect()));
        }
        if let Some(source) = query.source {
            all.push(Self::Equals { attribute: "sourceKind", value: source.as_str().to_owned() });
        }
        if let Some(creator) = &query.creator {
            let part = creator_codes::part_code(creator).ok_or(UnsupportedQuery::CreatorTooLong)?;
            all.push(Self::Contains { attribute: "creatorCodes", part });
        }
        for part in &query.excluded_creators {
            let part = creator_codes::part_code(part).ok_or(UnsupportedQuery::CreatorTooLong)?;
            all.push(Self::Not(Box::new(Self::Contains { attribute: "creatorCodes", part })));
        }
        let names = [&query.title, &query.artist];
        let excluded_names = [&query.excluded_titles, &query.excluded_artists];
        if names.iter().any(|name| name.is_some()) || excluded_names.iter().any(|names| !names.is_empty()) {
            return Err(UnsupportedQuery::NameWords);
        }
        let tag =
            |tag: &String| Self::Equals { attribute: sort_keys::TAG_KEYS, value: sort_keys::tag_key(tag) };
        all.extend(query.tags.iter().map(tag));
        all.extend(query.excluded_tags.iter().map(|excluded| Self::Not(Box::new(tag(excluded)))));
        all.extend(overlap("bpmMin", "bpmMax", query.bpm));
        all.extend(overlap("lengthMinMs", "lengthMaxMs", query.length_ms));
        all.extend(query.density_min.map(|value| compare("densityMax", ">=", value)));
        if let Some(conditions) = query.chart_conditions() {
            let ranges = chart_values::ranges(&conditions)?;
            if !ranges.is_empty() {
                all.push(Self::Or(ranges.into_iter().map(Self::Range).collect()));
            }
        }
        Ok(Self::And(all))
    }

    /// Whether it matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::And(all) if all.is_empty())
    }
}

fn compare(attribute: &'static str, comparison: &'static str, value: f64) -> Filter {
    Filter::Compare { attribute, comparison, value }
}

/// The range between the two attributes overlaps the bounds, both ends inclusive.
fn overlap(low: &'static str, high: &'static str, bounds: Bounds) -> impl Iterator<Item = Filter> {
    let min = bounds.min.map(|min| compare(high, ">=", min));
    let max = bounds.max.map(|max| compare(low, "<=", max));
    min.into_iter().chain(max)
}

/// The filter in the syntax of Meilisearch.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(all) => join(f, all, " AND "),
            Self::Or(any) => join(f, any, " OR "),
            Self::Compare { attribute, comparison, value } => {
                // Rust formats numbers without exponents, which Meilisearch would not parse.
                write!(f, "{attribute} {comparison} {value}")
            }
            Self::Range(range) => write!(f, "{range}"),
            Self::Equals { attribute, value } => write!(f, "{attribute} = {}", Quoted(value)),
            Self::Not(filter) => {
                f.write_str("NOT ")?;
                join(f, std::slice::from_ref(&**filter), "")
            }
            Self::Contains { attribute, part } => write!(f, "{attribute} CONTAINS {}", Quoted(part)),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, filters: &[Filter], between: &str) -> fmt::Result {
    for (position, filter) in filters.iter().enumerate() {
        if position > 0 {
            f.write_str(between)?;
        }
        match filter {
            Filter::And(_) | Filter::Or(_) => write!(f, "({filter})")?,
            _ => write!(f, "{filter}")?,
        }
    }
    Ok(())
}

/// A value in quotes, with quotes and backslashes escaped. All text in filters passes through here.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(character)?;
        }
        f.write_char('"')
    }
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
            assert_eq!(Filter::from_query(&query).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn nested_conditions_are_in_parentheses() {
        let is = |value: &str| Filter::Equals { attribute: "a", value: value.into() };
        let nested = Filter::Or(vec![Filter::And(vec![is("1"), is("2")]), is("3")]);
        assert_eq!(nested.to_string(), r#"(a = "1" AND a = "2") OR a = "3""#);
        assert_eq!(Filter::Not(Box::new(Filter::Or(vec![is("1")]))).to_string(), r#"NOT (a = "1")"#);
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
            assert_eq!(Quoted(text).to_string(), expected);
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
            let filter = Filter::Contains { attribute: "a", part: text.clone() }.to_string();
            let (value, rest) = unquote(filter.strip_prefix("a CONTAINS ").unwrap()).unwrap();
            prop_assert_eq!(value, text);
            prop_assert_eq!(rest, "");
        }
    }
}
