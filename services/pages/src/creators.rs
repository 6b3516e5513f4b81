//! The creators of a chartset, each linked to their page.

use std::cmp::Reverse;

use crate::list_query::escape;

/// A creator, and the address of what they made.
#[derive(Debug)]
pub(crate) struct CreatorLink {
    pub(crate) name: String,
    pub(crate) href: String,
}

impl CreatorLink {
    /// A link to the page of a creator. Where a name has none, to the sets with it.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), href: path(name).unwrap_or_else(|| list_path(name)) }
    }
}

/// The path of the page of a creator. A name that is too long for its index has none, and a part of a path that
/// is `.` or `..`, escaped or not, is removed by browsers.
pub(crate) fn path(name: &str) -> Option<String> {
    let has_page = !matches!(name, "." | "..") && name.chars().count() <= MAX_FILTER_CHARACTERS;
    has_page.then(|| format!("/creators/{}", escape(name).replace('+', "%20")))
}

/// The path of the list of the sets that have this name in their creators, in upper or lower case.
pub(crate) fn list_path(name: &str) -> String {
    let searched: String = name.chars().take(MAX_FILTER_CHARACTERS).collect();
    format!("/?creator={}", escape(searched.trim()))
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
    if names.is_empty() && !joined.is_empty() {
        // Several names, whose list is found by them as a whole.
        return vec![CreatorLink { name: joined.to_owned(), href: list_path(joined) }];
    }
    names.into_iter().map(|(name, _)| CreatorLink::new(name)).collect()
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

    #[test]
    fn every_name_has_an_address() {
        let long = "x".repeat(201);
        for (name, href) in [
            ("zoe", "/creators/zoe"),
            ("a b+c", "/creators/a%20b%2Bc"),
            ("a/b?#%", "/creators/a%2Fb%3F%23%25"),
            ("旋", "/creators/%E6%97%8B"),
            ("..", "/?creator=.."),
            (long.as_str(), &format!("/?creator={}", &long[..200])),
        ] {
            assert_eq!(CreatorLink::new(name).href, href, "{name}");
        }
        assert_eq!(links("b, a", std::iter::empty())[0].href, "/?creator=b,+a");
    }
}
