//! `GET /docs/search`: the pages of the documentation that contain all words of a text.

use askama::Template;

use super::docs_page::{Docs, Group};
use crate::layout::Layout;
use crate::render::render;

/// The longest excerpt before and after the first word, in characters.
const EXCERPT: usize = 120;
const MAX_CHARACTERS: usize = 200;

#[derive(Template)]
#[template(path = "api_docs/search.html")]
struct SearchTemplate<'a> {
    layout: Layout,
    groups: &'a [Group],
    words: &'a str,
    found: Vec<Found<'a>>,
}

struct Found<'a> {
    /// Whether a title contains a word: these pages come first.
    is_in_title: bool,
    path: String,
    title: &'a str,
    excerpt: String,
}

/// The texts of all pages.
pub(crate) struct Index(Vec<Entry>);

struct Entry {
    path: String,
    title: &'static str,
    text: String,
    /// The title and the text in lower case.
    folded: String,
}

impl Index {
    pub(crate) fn new(docs: &Docs) -> Self {
        let entry = |page: &super::docs_page::Page| {
            let text = page.plain_text();
            let folded = format!("{} {text}", page.title).to_lowercase();
            Entry { path: page.path.clone(), title: page.title, text, folded }
        };
        Self(docs.pages.iter().map(entry).collect())
    }

    /// The HTML of the results for a text.
    pub(crate) fn search(&self, docs: &Docs, text: &str) -> String {
        let text: String = text.chars().take(MAX_CHARACTERS).collect();
        let folded = text.to_lowercase();
        let words: Vec<&str> = folded.split_whitespace().collect();
        let matches =
            |entry: &&Entry| !words.is_empty() && words.iter().all(|word| entry.folded.contains(word));
        let mut found: Vec<Found<'_>> =
            self.0.iter().filter(matches).map(|entry| entry.found(&words)).collect();
        found.sort_by_key(|found| !found.is_in_title);
        let layout = Layout::not_indexed("Search the documentation");
        let template = SearchTemplate { layout, groups: docs.groups(), words: text.trim(), found };
        render(&template).unwrap_or_default()
    }
}

impl Entry {
    fn found(&self, words: &[&str]) -> Found<'_> {
        let title = self.title.to_lowercase();
        let lower = self.text.to_lowercase();
        let first = words.iter().filter_map(|word| lower.find(word)).min().unwrap_or(0);
        // Lower case may have another length: the excerpt is about the place.
        let at = lower[..first].chars().count();
        let start = at.saturating_sub(EXCERPT / 2);
        let excerpt: String = self.text.chars().skip(start).take(2 * EXCERPT).collect();
        let dots = if start > 0 { "… " } else { "" };
        Found {
            is_in_title: words.iter().any(|word| title.contains(word)),
            path: self.path.clone(),
            title: self.title,
            excerpt: format!("{dots}{excerpt} …"),
        }
    }
}
