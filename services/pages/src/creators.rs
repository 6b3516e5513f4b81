//! The creators of a chartset, each linked to their sets.

use std::cmp::Reverse;

use crate::list_query::escape;

/// A creator, and the list of their sets.
#[derive(Debug)]
pub(crate) struct CreatorLink {
    pub(crate) name: String,
    pub(crate) href: String,
}

impl CreatorLink {
    /// A link to the sets of a creator.
    pub(crate) fn new(name: &str) -> Self {
        let searched: String = name.chars().take(MAX_FILTER_CHARACTERS).collect();
        Self { name: name.to_owned(), href: format!("/?creator={}", escape(searched.trim())) }
    }
}

/// The longest text that the list accepts as a filter.
pub(crate) const MAX_FILTER_CHARACTERS: usize = 200;

/// The distinct creators of these charts, most charts first; without any, the creators as the chartset names
/// them.
pub(crate) fn links<'a>(joined: &str, of_charts: impl Iterator<Item = &'a str>) -> Vec<CreatorLink> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for name in of_charts.filter(|name| !name.is_empty()) {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|(_, count)| Reverse(*count));
    let fallback = if names.is_empty() && !joined.is_empty() { Some(joined) } else { None };
    names.into_iter().map(|(name, _)| name).chain(fallback).map(CreatorLink::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creators_are_ordered_by_their_charts() {
        let names = |joined, charts: &[&'static str]| {
            links(joined, charts.iter().copied()).into_iter().map(|link| link.name).collect::<Vec<_>>()
        };
        assert_eq!(names("b, a", &["a", "b", "", "b"]), ["b", "a"]);
        assert_eq!(names("b, a", &[]), ["b, a"]);
        assert!(names("", &["", ""]).is_empty());
    }
}
