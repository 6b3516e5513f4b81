//! Atom feeds (RFC 4287): `GET /feed.atom`, the chartsets that a list begins with, and feeds of charts.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_browse::{ListRead, PageFormat, Search};
use chart_index_cache::{CacheKey, Filled};
use chart_index_domain::search::SearchQuery;
use chart_index_domain::{Chart, ChartsetId, NoteHash, ReadError};
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::format;
use crate::list_query::{ListQuery, ParsedList};
use crate::list_title;
use crate::render::render;
use crate::set_view::{SetItem, SetView};

/// `GET /feed.atom`, for the filters and the order of a list.
pub(crate) async fn feed(
    State(state): State<Arc<PagesState>>,
    parsed: ParsedList,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let query = parsed.query.selection();
    let read = ListRead { cache: &state.cache, headers: &headers };
    let format = Arc::new(AtomFormat(Arc::clone(&state)));
    let page = state.engines.read_page(read, query.search, &format).await?;
    Ok(page.body.into_response(&headers, CachePolicy::Page, MediaType::Atom))
}

struct AtomFormat(Arc<PagesState>);

impl PageFormat for AtomFormat {
    fn cache_key(&self, name: &[u8]) -> CacheKey {
        self.0.key(&[b"feed ", name].concat())
    }

    async fn fill(&self, search: Search) -> Result<Filled, ReadError> {
        let page = search.find_page(&search.query).await?;
        let query = ListQuery { search: SearchQuery::clone(&search.query), ..ListQuery::default() };
        let items = page.items.iter().map(SetItem::read).collect::<Result<Vec<_>, _>>()?;
        let sets = SetView::all(items, Vec::new(), Vec::new(), &query.search);
        let ids: Vec<ChartsetId> = sets.iter().filter_map(|set| set.id.parse().ok()).collect();
        let updated = self.0.store.updated_times(&ids).await?;
        let title = if query.filters().is_empty() {
            "Chart Index".to_owned()
        } else {
            format!("Chart Index: {}", list_title::title(&query))
        };
        let feed = Feed {
            title,
            page: query.path(),
            path: query.path_below("/feed.atom"),
            name: format!("list:{}", query.query_string()),
        };
        let updated_of = |id: &str| updated.iter().find(|(known, _)| known.to_string() == id);
        let entries = sets.iter().filter_map(|set| Some(Entry::of_set(set, updated_of(&set.id)?.1)));
        let newest = updated.iter().map(|(_, updated)| *updated).max().unwrap_or(0);
        let text = feed.write(entries.collect(), newest, self.0.site())?;
        Ok(Filled { response: TextBody::new(text).into_cached(), position: page.position })
    }
}

#[derive(Template)]
#[template(path = "feed.xml", whitespace = "minimize")]
struct FeedTemplate<'a> {
    id: String,
    title: String,
    updated: String,
    public_url: &'a str,
    list: String,
    feed: String,
    entries: Vec<Entry>,
}

struct Entry {
    /// A URN.
    id: String,
    path: String,
    /// With the artist.
    title: String,
    creator: String,
    summary: String,
    updated: String,
}

/// A feed, which is that of a page.
pub(crate) struct Feed {
    pub(crate) title: String,
    /// The path of the page.
    pub(crate) page: String,
    /// The path of the feed.
    pub(crate) path: String,
    /// Identifies the feed where the URL of the site is not configured.
    pub(crate) name: String,
}

impl Feed {
    /// The feed with these charts in their order. It changes with each chart that `changed` has, also with one
    /// that is no longer known.
    pub(crate) fn of_charts<'a>(
        self,
        charts: impl IntoIterator<Item = &'a Chart>,
        changed: &[(NoteHash, i64)],
        public_url: &str,
    ) -> Result<String, ReadError> {
        let changed_at = |hash| changed.iter().find(|(known, _)| *known == hash).map_or(0, |(_, at)| *at);
        let newest = changed.iter().map(|(_, changed)| *changed).max().unwrap_or(0);
        let entries = charts.into_iter().map(|chart| Entry::of_chart(chart, changed_at(chart.hash)));
        self.write(entries.collect(), newest, public_url)
    }

    fn write(self, entries: Vec<Entry>, newest: i64, public_url: &str) -> Result<String, ReadError> {
        render(&FeedTemplate {
            id: match public_url {
                "" => format!("urn:chart-index:{}", self.name),
                url => format!("{url}{}", self.path),
            },
            title: xml_text(&self.title),
            updated: format::rfc3339(newest),
            public_url,
            list: self.page,
            feed: self.path,
            entries,
        })
    }
}

impl Entry {
    fn of_set(set: &SetView, updated: i64) -> Self {
        let creator = set.creators.iter().map(|creator| creator.name.as_str()).collect::<Vec<_>>().join(", ");
        let keys = set.keys.iter().map(|keys| format!("{keys}K")).collect::<Vec<_>>().join(" ");
        Self {
            id: format!("urn:chart-index:chartset:{}", set.id),
            path: format!("/chartsets/{}", set.id),
            title: xml_text(&format!("{} – {}", set.artist, set.title)),
            creator: author(&creator),
            summary: format!("{keys}, {} BPM, {}, {}", set.bpm.main, set.length, set.chart_count),
            updated: format::rfc3339(updated),
        }
    }

    fn of_chart(chart: &Chart, updated: i64) -> Self {
        let row = ChartRow::new(chart, None);
        let keys = row.keys_if_not_named();
        Self {
            id: format!("urn:chart-index:chart:{}", chart.hash),
            title: xml_text(&format!("{} – {} [{keys}{}]", row.artist, row.title, row.difficulty)),
            creator: author(&chart.creator),
            summary: format!(
                "{}K, {} {}, {} BPM, {}, {} notes",
                row.keys, row.level.meaning, row.level.number, row.bpm.main, row.length, row.notes
            ),
            path: row.href,
            updated: format::rfc3339(updated),
        }
    }
}

/// An entry has an author.
fn author(creator: &str) -> String {
    xml_text(if creator.is_empty() { "unknown" } else { creator })
}

/// The text without the characters that XML 1.0 forbids even as references (section 2.2).
fn xml_text(text: &str) -> String {
    text.chars()
        .filter(|character| {
            matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_forbids_are_removed() {
        let hostile = "a\u{0}b\u{1}c\u{b}d\u{1f}e\u{fffe}f\u{ffff}g\th旋🎵\u{202e}";
        assert_eq!(xml_text(hostile), "abcdefg\th旋🎵\u{202e}");
    }
}
