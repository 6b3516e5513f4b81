//! Searches for a hash, a chartset id or a source page, which lead to their page.

use chart_index_browse::SourcePages;
use chart_index_domain::search::SearchQuery;
use chart_index_domain::{ChartsetId, NoteHash, PublicSource, SourceKind};

use crate::pack_page;

/// What the text of a search names, apart from words to search for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shortcut {
    Chart(NoteHash),
    Chartset(ChartsetId),
    /// A set or a pack by the URL of its page.
    Source(PublicSource),
}

impl Shortcut {
    /// What the text of a query names, if it has no other filter.
    pub(crate) fn of_query(query: &SearchQuery, pages: &SourcePages) -> Option<Self> {
        let text = query.text.as_deref()?;
        let without_text = SearchQuery { text: None, ..query.clone() };
        let SearchQuery { sort, direction, page, ref after, .. } = *query;
        let only_text = SearchQuery { sort, direction, page, after: after.clone(), ..SearchQuery::default() };
        (without_text == only_text).then(|| Self::of_text(text, pages)).flatten()
    }

    fn of_text(text: &str, pages: &SourcePages) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        if let Ok(hash) = lower.parse() {
            return Some(Self::Chart(hash));
        }
        if let Ok(id) = lower.parse() {
            return Some(Self::Chartset(id));
        }
        pages.source_of(text).map(Self::Source)
    }

    /// The page of what is named: a set of the first game is one chartset, a pack of the second game has many.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Chart(hash) => format!("/charts/{hash}"),
            Self::Chartset(id) => format!("/chartsets/{id}"),
            Self::Source(source) if source.kind == SourceKind::AlphaSet => {
                format!("/chartsets/{}", ChartsetId::from_alpha_set(&source.reference))
            }
            Self::Source(source) => pack_page::path(&source.reference),
        }
    }
}
