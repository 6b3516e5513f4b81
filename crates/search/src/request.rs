//! A query of the list as one search of Meilisearch, and its answer as one page.

use std::collections::HashSet;

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{ChartsetPage, Direction, ListItem, SearchQuery, Sort};
use meilisearch_sdk::request::{HttpClient as _, Method};
use meilisearch_sdk::search::{MatchingStrategies, SearchQuery as SdkQuery, Selectors};
use serde::Deserialize;

use crate::document::{ITEM, PRIMARY_KEY};
use crate::filter::Filter;
use crate::node::Node;
use crate::order::{self, Key, Position, Walk};
use crate::{SearchError, Target, words};

const OPERATION: &str = "search chartsets";

/// Everything of a search that follows from the query alone.
#[derive(Debug)]
pub(crate) struct PageSearch<'a> {
    query: &'a SearchQuery,
    words: String,
    filter: String,
    by_relevance: bool,
}

/// Which part of the list is asked for.
#[derive(Debug, Clone, Copy)]
enum Window {
    /// The page of the query.
    Page,
    /// None of it, only its length.
    Length,
    /// So many sets, after those that lie between them and the end, last set first.
    FromTheEnd { skipped: u64, sets: u64 },
}

/// Meilisearch has no exact answer to this query: an engine that does has to be asked. Nothing is wrong with the
/// nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable {
    /// The text has more than ten words.
    #[error("Meilisearch looks at ten words of a text at most")]
    ManyWords,
    /// Part of a creator's name is asked for, and the part has more than 117 bytes.
    #[error("so long a part of a creator's name is not looked for in Meilisearch")]
    LongCreator,
    /// Relevance is asked for with the worst match first.
    #[error("Meilisearch lists the best match first and no other way")]
    WorstMatchFirst,
    /// Part of a creator's name is asked for, and no node that could be asked has the feature `containsFilter` on.
    #[error("this node does not look for part of a creator's name")]
    NoContains,
}

/// The part of an answer that counts. The SDK's own type reads every hit twice, to split what belongs to the
/// document from what belongs to the search.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    hits: Vec<Hit>,
    /// No estimate without `distinct`, vectors and a threshold, whatever it is called.
    #[serde(alias = "estimatedTotalHits")]
    total_hits: u64,
}

/// What is asked for of a document.
#[derive(Debug, Deserialize)]
struct Hit {
    id: ChartsetId,
    item: ListItem,
    /// Of whichever attribute the list is sorted by.
    #[serde(
        alias = "updatedAtMs",
        alias = "titleKey",
        alias = "artistKey",
        alias = "bpmMax",
        alias = "lengthMaxMs",
        alias = "densityMax"
    )]
    key: Key,
}

impl<'a> PageSearch<'a> {
    pub(crate) fn of(query: &'a SearchQuery) -> Result<Self, Unanswerable> {
        let text = query.text.as_deref().unwrap_or_default();
        let words = words::query(text).ok_or(Unanswerable::ManyWords)?;
        let filter = Filter::of(query).ok_or(Unanswerable::LongCreator)?;
        let by_relevance = query.sort == Sort::Relevance && !words.is_empty();
        if by_relevance && query.direction == Direction::Ascending {
            return Err(Unanswerable::WorstMatchFirst);
        }
        let filter = if filter.is_empty() { String::new() } else { filter.to_string() };
        Ok(Self { query, words, filter, by_relevance })
    }

    /// Whether it needs the feature `containsFilter`.
    pub(crate) const fn needs_contains(&self) -> bool {
        self.query.creator.is_some()
    }

    /// Asks a node. Never more than one of them: two may hold different states.
    ///
    /// A page from the position `deep_from` on is approached from the end of the list where that is nearer:
    /// Meilisearch passes over all that lies before what it is asked for. That takes a second question, for the
    /// length of the list.
    pub(crate) async fn run(&self, node: &Node, deep_from: u64) -> Result<ChartsetPage, SearchError> {
        let page = self.query.page;
        if self.by_relevance || page.offset() < deep_from {
            return self.page(self.ask(node, Window::Page).await?);
        }
        let total = self.ask(node, Window::Length).await?.total_hits;
        let behind_its_start = total.saturating_sub(page.offset());
        if behind_its_start == 0 {
            return Ok(ChartsetPage { items: Vec::new(), total });
        }
        let sets = behind_its_start.min(page.size().into());
        let skipped = behind_its_start - sets;
        if skipped < page.offset() {
            let mut answer = self.ask(node, Window::FromTheEnd { skipped, sets }).await?;
            // Unless the list changed in between.
            if answer.total_hits == total {
                answer.hits.reverse();
                return self.page(answer);
            }
        }
        self.page(self.ask(node, Window::Page).await?)
    }

    async fn ask(&self, node: &Node, window: Window) -> Result<Answer, SearchError> {
        let index = node.index(Target::Live);
        let sort = self.sort(window);
        let sort: Vec<&str> = sort.iter().map(String::as_str).collect();
        let listed = [PRIMARY_KEY, ITEM, order::exact_key(self.query.sort)];
        let mut search = SdkQuery::new(&index);
        search
            .with_query(&self.words)
            .with_matching_strategy(MatchingStrategies::ALL)
            .with_attributes_to_retrieve(Selectors::Some(&listed));
        match window {
            Window::Page => {
                let page = self.query.page;
                search.with_page(page.number() as usize).with_hits_per_page(page.size() as usize);
            }
            Window::Length => {
                search.with_page(1).with_hits_per_page(0);
            }
            Window::FromTheEnd { skipped, sets } => {
                let position = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
                search.with_offset(position(skipped)).with_limit(position(sets));
            }
        }
        if !self.filter.is_empty() {
            search.with_filter(&self.filter);
        }
        if !sort.is_empty() {
            search.with_sort(&sort);
        }
        let url = format!("{}/indexes/{}/search", node.config.url, node.uid(Target::Live));
        let request = Method::Post { query: (), body: &search };
        let answer = node.transport.request::<(), _, Answer>(&url, request, 200).await;
        answer.map_err(SearchError::of(OPERATION))
    }

    fn sort(&self, window: Window) -> Vec<String> {
        let walk = match window {
            Window::Length => return Vec::new(),
            _ if self.by_relevance => return Vec::new(),
            Window::Page => Walk::Forward,
            Window::FromTheEnd { .. } => Walk::Backward,
        };
        order::terms(self.query.sort, self.query.direction, walk)
    }

    /// The answer as a page, if it can be one: as many sets as there have to be, each once, in order.
    fn page(&self, answer: Answer) -> Result<ChartsetPage, SearchError> {
        let total = answer.total_hits;
        let mut items = Vec::with_capacity(answer.hits.len());
        let mut positions = Vec::with_capacity(answer.hits.len());
        for hit in answer.hits {
            positions.push(Position { key: hit.key, id: hit.id });
            items.push(hit.item);
        }
        let page = self.query.page;
        let expected = total.saturating_sub(page.offset()).min(page.size().into());
        if items.len() as u64 != expected {
            let reason = format!("{} hits on page {} of {total}", items.len(), page.number());
            return Err(SearchError::nonsense(OPERATION, reason));
        }
        // The order of relevance is Meilisearch's alone; every other one is the order of the keys that came along, in
        // which no two sets are equal.
        if self.by_relevance {
            let mut ids = HashSet::new();
            if !positions.iter().all(|position| ids.insert(position.id)) {
                return Err(SearchError::nonsense(OPERATION, "a set stands on the page twice"));
            }
        } else if !positions.is_sorted_by(|a, b| a.is_before(b, self.query.direction)) {
            return Err(SearchError::nonsense(OPERATION, "the page is out of order"));
        }
        Ok(ChartsetPage { items, total })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::Document;
    use crate::document::tests::indexed;

    fn answer(numbers: &[u64], total: u64) -> Answer {
        let hit = |&number: &u64| {
            let document = json!(Document::of(&indexed(number, "same")));
            json!({ "id": document["id"], "item": document["item"], "updatedAtMs": document["updatedAtMs"] })
        };
        let hits: Vec<_> = numbers.iter().map(hit).collect();
        serde_json::from_str(&json!({ "hits": hits, "totalHits": total }).to_string()).unwrap()
    }

    fn outcome(query: &SearchQuery, numbers: &[u64], total: u64) -> Option<usize> {
        let page = PageSearch::of(query).unwrap().page(answer(numbers, total));
        page.ok().map(|page| page.items.len())
    }

    #[test]
    fn a_page_that_contradicts_its_total_or_order_is_no_page() {
        let query = SearchQuery::default();
        for (numbers, total, expected) in [
            (&[1, 2, 3][..], 3, Some(3)),
            (&[], 0, Some(0)),
            (&[1, 2], 3, None),
            (&[1, 2, 3], 2, None),
            (&[1, 3, 2], 3, None),
            (&[1, 2, 2], 3, None),
        ] {
            assert_eq!(outcome(&query, numbers, total), expected, "{numbers:?} of {total}");
        }
        let past = SearchQuery { page: chart_index_domain::search::PageRequest::clamped(3, 2), ..query };
        assert_eq!(outcome(&past, &[], 3), Some(0));
        assert_eq!(outcome(&past, &[5], 5), Some(1));
        assert_eq!(outcome(&past, &[], 5), None);
    }

    #[test]
    fn the_key_of_every_order_is_read() {
        for sort in Sort::ALL {
            let hit = json!({ "id": "00000000000000a1", "item": {}, order::exact_key(sort): 7 });
            let hit: Hit = serde_json::from_str(&hit.to_string()).unwrap();
            assert_eq!(hit.key, Key::Number(7.0), "{sort:?}");
        }
    }

    #[test]
    fn what_meilisearch_cannot_answer_exactly_is_not_asked() {
        let query = SearchQuery::default;
        let text = |text: &str| Some(text.to_owned());
        let of = |query: &SearchQuery| PageSearch::of(query).err();
        let worst = SearchQuery { sort: Sort::Relevance, direction: Direction::Ascending, ..query() };
        for (query, expected) in [
            (SearchQuery { text: text("a b c d e f g h i j k"), ..query() }, Some(Unanswerable::ManyWords)),
            (SearchQuery { creator: text(&"宙".repeat(40)), ..query() }, Some(Unanswerable::LongCreator)),
            (SearchQuery { text: text("a"), ..worst.clone() }, Some(Unanswerable::WorstMatchFirst)),
            (SearchQuery { text: text("!"), ..worst.clone() }, None),
            (worst, None),
            (query(), None),
        ] {
            assert_eq!(of(&query), expected, "{query:?}");
        }
    }
}
