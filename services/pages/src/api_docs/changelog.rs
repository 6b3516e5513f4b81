//! `GET /docs/changelog.atom`: the changelog of docs/api.md as an Atom feed (RFC 4287).

use askama::Template;

use super::{markdown, reference};
use crate::render::render;
use crate::settings::PublicUrl;

#[derive(Template)]
#[template(path = "api_docs/changelog.xml", whitespace = "minimize")]
struct ChangelogTemplate<'a> {
    /// Empty if it is not configured.
    public_url: &'a str,
    /// The newest first.
    entries: Vec<Entry>,
}

struct Entry {
    /// `YYYY-MM-DD`.
    date: &'static str,
    /// HTML.
    change: String,
}

/// The feed of a site with this address.
pub(crate) fn feed(url: Option<&PublicUrl>) -> String {
    let feed = ChangelogTemplate { public_url: url.map_or("", PublicUrl::as_str), entries: entries() };
    // A template that writes to memory does not fail.
    render(&feed).unwrap_or_default()
}

fn entries() -> Vec<Entry> {
    let rows = reference::rows(reference::section("Changelog"), "Date").into_iter();
    rows.filter_map(|row| {
        let change = markdown::inline_html(row.cells.first()?);
        Some(Entry { date: row.names.first()?, change })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_dated_and_the_newest_is_first() {
        let dates: Vec<&str> = entries().iter().map(|entry| entry.date).collect();
        assert!(dates.contains(&"2026-11-28"), "{dates:?}");
        assert!(dates.is_sorted_by(|newer, older| newer > older), "{dates:?}");
    }
}
