//! A list query as a search of Meilisearch, and the response as a page.
//!
//! Meilisearch skips everything before a page, so that deep pages are slow. A page beyond
//! [`reverse_from_offset`](crate::SearchConfig::reverse_from_offset) is read from the end of its list where the
//! end is nearer. For the third page of a list of 7 chartsets, 2 per page:
//!
//! ```text
//! position from the start   0  1  2  3 [4  5] 6
//! position from the end     6  5  4  3 [2  1] 0
//! ```
//!
//! 1. A search for the total, which returns no chartsets: 7.
//! 2. A search in reverse order with `offset: 1, limit: 2`, which returns the chartsets 5 and 4.
//!
//! The page is 4 and 5. If the total has changed between the two requests, the page is requested from the
//! start.
//!
//! Each request reads the state of the index as well, before the chartsets: the page has at least the changes
//! up to that position. A position from another request says nothing about the page: the node may have been
//! restarted with older data in between.

use std::collections::{HashMap, HashSet};

use chart_index_domain::search::{
    ChartsetPage, Direction, ListItem, PageRequest, RatingHistogram, SearchQuery, Sort,
};
use chart_index_domain::{ChartsetId, Position};
use meilisearch_sdk::request::{HttpClient as _, Method};
use meilisearch_sdk::search::{MatchingStrategies, SearchQuery as SdkQuery, Selectors};
use serde::Deserialize;

use crate::document::{ITEM, PRIMARY_KEY, RATING_BINS, RATINGS};
use crate::index_state::{STATE_ID, StateDocument};
use crate::node::Node;
use crate::search_node::NodeSearch;
use crate::sort_keys::{self, Key, ReadFrom, SortPosition, UPDATED_AT};
use crate::transport::Transport;
use crate::unsupported_query::UnsupportedQuery;
use crate::{SearchError, Target, filter, rating_bins, word_codes};

const OPERATION: &str = "search chartsets";

/// The parts of a search that depend on the query alone.
#[derive(Debug)]
pub(crate) struct PageSearch<'a> {
    query: &'a SearchQuery,
    words: String,
    filter: String,
    by_relevance: bool,
}

/// The part of the list that a request returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    Page,
    /// No chartsets, only the total.
    Total,
    /// No chartsets, but their numbers by the bins of their ratings.
    RatingBins,
    /// Chartsets from the end of the list, the last one first.
    FromEnd {
        offset: u64,
        limit: u64,
    },
}

impl Window {
    /// The page of a list of `total` chartsets, counted from the end; `None` if the start is nearer.
    fn from_end(page: PageRequest, total: u64) -> Option<Self> {
        let remaining = total.saturating_sub(page.offset());
        let limit = remaining.min(page.size().into());
        let offset = remaining - limit;
        (offset < page.offset()).then_some(Self::FromEnd { offset, limit })
    }

    /// Sets the pagination parameters of a search.
    fn apply(self, page: PageRequest, search: &mut SdkQuery<'_, Transport>) {
        match self {
            Self::Page => search.with_page(page.number() as usize).with_hits_per_page(page.size() as usize),
            Self::Total => search.with_page(1).with_hits_per_page(0),
            Self::RatingBins => {
                search.with_page(1).with_hits_per_page(0).with_facets(Selectors::Some(&[RATING_BINS]))
            }
            Self::FromEnd { offset, limit } => {
                let to_usize = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
                search.with_offset(to_usize(offset)).with_limit(to_usize(limit))
            }
        };
    }
}

/// The response to a request: the results of its searches, in their order. The SDK's own type parses every hit
/// twice, to separate the fields of the document from those of the search.
#[derive(Debug, Deserialize)]
struct MultiSearchResponse {
    results: (StateResult, SearchResult),
}

#[derive(Debug, Deserialize)]
struct StateResult {
    /// The state; empty where there is none.
    hits: Vec<StateDocument>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchResult {
    hits: Vec<Hit>,
    /// Exact despite the name of the alias, as no search uses `distinct`, vectors or a score threshold.
    #[serde(alias = "estimatedTotalHits")]
    total_hits: u64,
    facet_distribution: Option<FacetDistribution>,
}

/// The numbers of chartsets by the values of an attribute.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FacetDistribution {
    rating_bins: HashMap<usize, u64>,
}

/// The retrieved attributes of a document.
#[derive(Debug, Deserialize)]
struct Hit {
    id: ChartsetId,
    item: ListItem,
    /// The exact key of the sort, under the name of its attribute, if it is not the time.
    #[serde(
        default,
        alias = "titleKey",
        alias = "artistKey",
        alias = "bpmMax",
        alias = "bpmMainMax",
        alias = "lengthMaxMs",
        alias = "densityMax",
        alias = "ratingMax",
        alias = "notesMax"
    )]
    key: Option<Key>,
    /// The exact key of the sort, or asked for.
    #[serde(default, rename = "updatedAtMs")]
    updated_at_ms: Option<i64>,
    /// The least and the greatest rating in hundredths, if they were asked for and there is one.
    #[serde(default)]
    ratings: Option<(u16, u16)>,
}

impl Hit {
    /// The exact key of the sort.
    fn sort_key(&mut self, sort: Sort) -> Option<Key> {
        match sort_keys::exact_key(sort) {
            UPDATED_AT => self.updated_at_ms.map(Key::from_time),
            _ => self.key.take(),
        }
    }

    /// The list item, with the extension fields that the query includes.
    fn into_item(self, query: &SearchQuery) -> ListItem {
        let item = match self.ratings {
            Some((least, greatest)) => self.item.with_ratings(least, greatest),
            None => self.item,
        };
        match self.updated_at_ms {
            Some(updated_at_ms) if query.includes_updated => item.with_updated(updated_at_ms),
            _ => item,
        }
    }
}

impl<'a> PageSearch<'a> {
    pub(crate) fn new(query: &'a SearchQuery) -> Result<Self, UnsupportedQuery> {
        if query.after.is_some() {
            return Err(UnsupportedQuery::Cursor);
        }
        if query.published_in.is_some() {
            return Err(UnsupportedQuery::PublishedIn);
        }
        let text = query.text.as_deref().unwrap_or_default();
        let words = word_codes::query_words(text).ok_or(UnsupportedQuery::TooManyWords)?;
        let filter = filter::from_query(query)?;
        let by_relevance = query.sort == Sort::Relevance && !words.is_empty();
        if by_relevance && query.direction == Direction::Ascending {
            return Err(UnsupportedQuery::AscendingRelevance);
        }
        Ok(Self { query, words, filter, by_relevance })
    }

    /// Reads the position and a part of the list in one request.
    async fn request(&self, node: &Node, window: Window) -> Result<(Position, SearchResult), SearchError> {
        let index = node.index(Target::Live);
        let sort = self.sort(window);
        let sort: Vec<&str> = sort.iter().map(String::as_str).collect();
        let key = sort_keys::exact_key(self.query.sort);
        let mut retrieved = vec![PRIMARY_KEY, ITEM, key];
        retrieved.extend(self.query.includes_rating.then_some(RATINGS));
        retrieved.extend((self.query.includes_updated && key != UPDATED_AT).then_some(UPDATED_AT));
        let mut search = SdkQuery::new(&index);
        search
            .with_query(&self.words)
            .with_matching_strategy(MatchingStrategies::ALL)
            .with_attributes_to_retrieve(Selectors::Some(&retrieved));
        window.apply(self.query.page, &mut search);
        if !self.filter.is_empty() {
            search.with_filter(&self.filter);
        }
        if !sort.is_empty() {
            search.with_sort(&sort);
        }
        // The other documents of this index, of quarantined chartsets, have no words with these letters.
        let state_index = node.client.index(node.state_uid(Target::Live));
        let mut state = SdkQuery::new(&state_index);
        state.with_query(STATE_ID).with_limit(1);
        let mut searches = node.client.multi_search();
        let searches = searches.with_search_query(state).with_search_query(search);
        let url = format!("{}/multi-search", node.config.url);
        let request = Method::Post { query: (), body: searches };
        let response = node.transport.request::<(), _, MultiSearchResponse>(&url, request, 200).await;
        let (state, result) = response.map_err(SearchError::from_sdk(OPERATION))?.results;
        let state = state.hits.first().ok_or(SearchError::IndexReplaced)?;
        let position = state.position().map_err(|error| SearchError::invalid_response(OPERATION, error))?;
        Ok((position, result))
    }

    fn sort(&self, window: Window) -> Vec<String> {
        let from = match window {
            Window::Total | Window::RatingBins => return Vec::new(),
            _ if self.by_relevance => return Vec::new(),
            Window::Page => ReadFrom::Start,
            Window::FromEnd { .. } => ReadFrom::End,
        };
        sort_keys::sort_terms(self.query.sort, self.query.direction, from)
    }

    /// The response as a page, after a check that it has the expected number of chartsets, each once, in order.
    fn page(&self, (position, result): (Position, SearchResult)) -> Result<ChartsetPage, SearchError> {
        let total = result.total_hits;
        let mut items = Vec::with_capacity(result.hits.len());
        let mut positions = Vec::with_capacity(result.hits.len());
        for mut hit in result.hits {
            let key = hit.sort_key(self.query.sort);
            let key =
                key.ok_or_else(|| SearchError::invalid_response(OPERATION, "a hit without its sort key"))?;
            positions.push(SortPosition { key, id: hit.id });
            items.push(hit.into_item(self.query));
        }
        let page = self.query.page;
        let expected = total.saturating_sub(page.offset()).min(page.size().into());
        if items.len() as u64 != expected {
            let reason = format!("{} hits on page {} of {total} chartsets", items.len(), page.number());
            return Err(SearchError::invalid_response(OPERATION, reason));
        }
        // Only Meilisearch knows the order of relevance. Any other order is that of the retrieved keys and ids,
        // in which no two chartsets are equal.
        if self.by_relevance {
            let mut ids = HashSet::new();
            if !positions.iter().all(|position| ids.insert(position.id)) {
                return Err(SearchError::invalid_response(OPERATION, "a chartset is on the page twice"));
            }
        } else if !positions.is_sorted_by(|a, b| a.is_before(b, self.query.direction)) {
            return Err(SearchError::invalid_response(OPERATION, "the page is out of order"));
        }
        let continues = page.offset() + items.len() as u64 != total;
        let last = positions.pop().filter(|_| continues && !self.by_relevance);
        let next = last.and_then(|last| last.in_list(self.query.sort));
        Ok(ChartsetPage { items, total, next, position: Some(position) })
    }
}

impl NodeSearch for PageSearch<'_> {
    type Found = ChartsetPage;

    fn needs_contains_filter(&self) -> bool {
        self.query.creator.is_some() || !self.query.excluded_creators.is_empty()
    }

    /// A page at `reverse_from_offset` or beyond is read from the end of the list where the end is nearer.
    async fn run(&self, node: &Node, reverse_from_offset: u64) -> Result<ChartsetPage, SearchError> {
        let page = self.query.page;
        if self.by_relevance || page.offset() < reverse_from_offset {
            return self.page(self.request(node, Window::Page).await?);
        }
        let (position, SearchResult { total_hits: total, .. }) = self.request(node, Window::Total).await?;
        if total <= page.offset() {
            return Ok(ChartsetPage { items: Vec::new(), total, next: None, position: Some(position) });
        }
        if let Some(window) = Window::from_end(page, total) {
            let (position, mut result) = self.request(node, window).await?;
            // Otherwise the list changed between the requests.
            if result.total_hits == total {
                result.hits.reverse();
                return self.page((position, result));
            }
        }
        self.page(self.request(node, Window::Page).await?)
    }

    fn position(page: &mut ChartsetPage) -> &mut Option<Position> {
        &mut page.position
    }
}

/// A search for the histogram of the ratings that a query finds.
#[derive(Debug)]
pub(crate) struct HistogramSearch<'a>(pub(crate) PageSearch<'a>);

impl NodeSearch for HistogramSearch<'_> {
    type Found = RatingHistogram;

    fn needs_contains_filter(&self) -> bool {
        self.0.needs_contains_filter()
    }

    async fn run(&self, node: &Node, _: u64) -> Result<RatingHistogram, SearchError> {
        let (position, result) = self.0.request(node, Window::RatingBins).await?;
        let facets = result.facet_distribution;
        let chartsets =
            facets.and_then(|facets| rating_bins::histogram(&facets.rating_bins, self.0.query.keys));
        let chartsets = chartsets
            .ok_or_else(|| SearchError::invalid_response(OPERATION, "no distribution of ratings"))?;
        Ok(RatingHistogram { chartsets, position: Some(position) })
    }

    fn position(histogram: &mut RatingHistogram) -> &mut Option<Position> {
        &mut histogram.position
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::search::{After, Bounds};
    use chart_index_domain::{Origin, PublicSource, SourceKind, SourceRef};
    use serde_json::json;

    use super::*;
    use crate::document::ChartsetDocument;
    use crate::document::tests::indexed;

    const POSITION: Position = Position { origin: Origin(1), sequence: 7 };

    fn result(numbers: &[u64], total: u64) -> SearchResult {
        let hit = |&number: &u64| {
            let document = json!(ChartsetDocument::new(&indexed(number, "same")));
            json!({ "id": document["id"], "item": document["item"], "updatedAtMs": document["updatedAtMs"] })
        };
        let hits: Vec<_> = numbers.iter().map(hit).collect();
        serde_json::from_str(&json!({ "hits": hits, "totalHits": total }).to_string()).unwrap()
    }

    fn page_length(query: &SearchQuery, numbers: &[u64], total: u64) -> Option<usize> {
        let page = PageSearch::new(query).unwrap().page((POSITION, result(numbers, total)));
        page.ok().map(|page| page.items.len())
    }

    #[test]
    fn pages_in_the_second_half_are_nearer_to_the_end() {
        for (page, expected) in [
            (2, None),
            (3, Some(Window::FromEnd { offset: 1, limit: 2 })),
            (4, Some(Window::FromEnd { offset: 0, limit: 1 })),
        ] {
            assert_eq!(Window::from_end(PageRequest::clamped(page, 2), 7), expected, "page {page}");
        }
    }

    #[test]
    fn page_that_contradicts_its_total_or_order_is_an_error() {
        let query = SearchQuery::default();
        for (numbers, total, expected) in [
            (&[1, 2, 3][..], 3, Some(3)),
            (&[], 0, Some(0)),
            (&[1, 2], 3, None),
            (&[1, 2, 3], 2, None),
            (&[1, 3, 2], 3, None),
            (&[1, 2, 2], 3, None),
        ] {
            assert_eq!(page_length(&query, numbers, total), expected, "{numbers:?} of {total}");
        }
        let past = SearchQuery { page: PageRequest::clamped(3, 2), ..query };
        assert_eq!(page_length(&past, &[], 3), Some(0));
        assert_eq!(page_length(&past, &[5], 5), Some(1));
        assert_eq!(page_length(&past, &[], 5), None);
    }

    #[test]
    fn hits_have_the_key_of_every_sort() {
        for &sort in Sort::ALL {
            let hit = json!({ "id": "00000000000000a1", "item": {}, sort_keys::exact_key(sort): 7 });
            let mut hit: Hit = serde_json::from_str(&hit.to_string()).unwrap();
            assert_eq!(hit.sort_key(sort), Some(Key::Number(7.0)), "{sort:?}");
        }
    }

    #[test]
    fn unsupported_queries_are_not_sent() {
        let query = SearchQuery::default;
        let text = |text: &str| Some(text.to_owned());
        let error = |query: &SearchQuery| PageSearch::new(query).err();
        let worst = SearchQuery { sort: Sort::Relevance, direction: Direction::Ascending, ..query() };
        let pack = PublicSource { kind: SourceKind::BetaPack, reference: SourceRef::from_number(5).unwrap() };
        for (query, expected) in [
            (
                SearchQuery { text: text("a b c d e f g h i j k"), ..query() },
                Some(UnsupportedQuery::TooManyWords),
            ),
            (
                SearchQuery { creator: text(&"宙".repeat(40)), ..query() },
                Some(UnsupportedQuery::CreatorTooLong),
            ),
            (SearchQuery { text: text("a"), ..worst.clone() }, Some(UnsupportedQuery::AscendingRelevance)),
            (SearchQuery { after: Some(After::Start), ..query() }, Some(UnsupportedQuery::Cursor)),
            (SearchQuery { published_in: Some(pack), ..query() }, Some(UnsupportedQuery::PublishedIn)),
            (SearchQuery { title: text("a"), ..query() }, Some(UnsupportedQuery::NameWords)),
            (
                SearchQuery { excluded_artists: vec!["a".into()], ..query() },
                Some(UnsupportedQuery::NameWords),
            ),
            (
                SearchQuery { matches_one_chart: true, bpm: Bounds { min: Some(1.0), max: None }, ..query() },
                Some(UnsupportedQuery::SeveralChartConditions),
            ),
            (SearchQuery { text: text("!"), ..worst.clone() }, None),
            (worst, None),
            (query(), None),
        ] {
            assert_eq!(error(&query), expected, "{query:?}");
        }
    }
}
