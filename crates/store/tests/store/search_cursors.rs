//! Lists that are read by cursor, with changes in between.

use chart_index_domain::search::{
    After, Direction, ListPosition, PageRequest, SearchIndex, SearchQuery, Sort, SortValue,
};
use chart_index_domain::text;

use crate::search_pages::{eleven_sets, engine};
use crate::support::{Catalogue, id, ids, titled};

/// A walk through a list, two sets at a time.
struct Walk<'a> {
    catalogue: &'a Catalogue,
    query: SearchQuery,
    is_complete: bool,
}

impl<'a> Walk<'a> {
    fn new(catalogue: &'a Catalogue, query: &SearchQuery) -> Self {
        let page = PageRequest::clamped(1, 2);
        let query = SearchQuery { after: Some(After::Start), page, ..query.clone() };
        Self { catalogue, query, is_complete: false }
    }

    /// The sets of the next page; none after the last one.
    async fn next(&mut self) -> Vec<u64> {
        if self.is_complete {
            return Vec::new();
        }
        let page = engine(self.catalogue).search(&self.query).await.unwrap();
        self.is_complete = page.next.is_none();
        self.query.after = page.next.clone().map(After::Position);
        let ids = ids(&page);
        assert!(ids.len() == 2 || self.is_complete, "{ids:?}");
        ids
    }

    async fn rest(&mut self) -> Vec<u64> {
        let mut rest = Vec::new();
        while !self.is_complete {
            rest.extend(self.next().await);
        }
        rest
    }
}

/// Sets are added before and after the position, and with the same title, and sets that were read, the last one
/// included, and that were not are removed.
#[tokio::test]
async fn changes_neither_repeat_nor_skip_a_set_that_stays() {
    let catalogue = eleven_sets().await;
    let query = SearchQuery { sort: Sort::Title, direction: Direction::Ascending, ..SearchQuery::default() };
    let mut walk = Walk::new(&catalogue, &query);
    assert_eq!(walk.next().await, [1, 2]);
    assert_eq!(walk.next().await, [3, 4]);
    catalogue.put(&titled(20, "Title 0"), 20).await;
    catalogue.put(&titled(21, "Title 1"), 21).await;
    catalogue.put(&titled(22, "Title 2"), 22).await;
    for (number, now_ms) in [(4, 23), (1, 24), (7, 25)] {
        catalogue.remove(id(number), now_ms).await;
    }
    assert_eq!(walk.rest().await, [5, 21, 6, 8, 22, 9, 10, 11]);
}

/// Newest first: what changes during the walk is before its beginning.
#[tokio::test]
async fn changed_sets_are_not_repeated_when_the_newest_come_first() {
    let catalogue = eleven_sets().await;
    let mut walk = Walk::new(&catalogue, &SearchQuery::default());
    assert_eq!(walk.next().await, [9, 10]);
    for number in [5, 10, 30] {
        catalogue.put(&titled(number, "Changed"), 40).await;
    }
    assert_eq!(walk.rest().await, [11, 6, 7, 8, 3, 4, 1, 2]);
}

/// A rank that does not exist, as in a cursor that someone made up.
#[tokio::test]
async fn unknown_ranks_are_compared_as_numbers() {
    let catalogue = eleven_sets().await;
    let text = Some("title 3".to_owned());
    for (rank, direction, expected) in [(9, Direction::Descending, 3), (9, Direction::Ascending, 0)] {
        let position = ListPosition { value: SortValue::Relevance(rank, 0), id: id(1) };
        let after = Some(After::Position(position));
        let query = SearchQuery {
            text: text.clone(),
            sort: Sort::Relevance,
            direction,
            after,
            ..SearchQuery::default()
        };
        assert_eq!(engine(&catalogue).search(&query).await.unwrap().items.len(), expected);
    }
}

#[tokio::test]
async fn names_with_nul_are_compared() {
    let catalogue = eleven_sets().await;
    let position = ListPosition { value: SortValue::Name(text::sort_key("a\0b")), id: id(1) };
    let query = SearchQuery {
        sort: Sort::Title,
        direction: Direction::Ascending,
        after: Some(After::Position(position)),
        ..SearchQuery::default()
    };
    assert_eq!(engine(&catalogue).search(&query).await.unwrap().items.len(), 11);
}
