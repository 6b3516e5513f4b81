//! Pages whose total is cached, with changes in between.

use std::time::{Duration, Instant};

use chart_index_domain::search::{ChartsetPage, Direction, PageRequest, SearchIndex, SearchQuery, Sort};
use chart_index_store::{CatalogueWatch, PostgresSearch};

use crate::support::{Catalogue, OpenTransaction, hash, id, ids, titled};

/// An engine that never learns of a change.
pub(crate) fn engine(catalogue: &Catalogue) -> PostgresSearch {
    PostgresSearch::new(catalogue.store.clone(), CatalogueWatch::disabled())
}

async fn page(engine: &PostgresSearch, query: &SearchQuery, number: i64, size: i64) -> ChartsetPage {
    let query = SearchQuery { page: PageRequest::clamped(number, size), ..query.clone() };
    engine.search(&query).await.unwrap()
}

/// Sets 1 to 11 with ties: every three have the same title, artist and time of the last change.
pub(crate) async fn eleven_sets() -> Catalogue {
    let catalogue = Catalogue::create().await;
    for number in 1..=11 {
        let mut draft = titled(number, &format!("Title {}", number / 3));
        draft.charts[0].metadata.artist = format!("Artist {}", number / 3);
        draft.charts[0].metadata.creator = "Creator".into();
        draft.charts[0].numbers = crate::support::numbers(number / 3);
        catalogue.put(&draft, i64::from(number / 3)).await;
    }
    catalogue
}

#[tokio::test]
async fn a_total_that_is_too_old_is_counted_again_after_a_change() {
    let catalogue = eleven_sets().await;
    let engine = engine(&catalogue).with_max_total_age(Duration::ZERO);
    let query = SearchQuery { sort: Sort::Title, direction: Direction::Ascending, ..SearchQuery::default() };
    let last = async || {
        let page = page(&engine, &query, 4, 3).await;
        (ids(&page), page.total)
    };
    assert_eq!(last().await, (vec![10, 11], 11));
    assert_eq!(last().await, (vec![10, 11], 11));
    catalogue.put(&titled(12, "Title 9"), 12).await;
    assert_eq!(last().await, (vec![10, 11, 12], 12));
    catalogue.remove(id(1), 13).await;
    assert_eq!(last().await, (vec![11, 12], 11));
    catalogue.remove(hash(12), 14).await;
    assert_eq!(last().await, (vec![11], 10));
    catalogue.restore(hash(12), 15).await;
    catalogue.restore(id(1), 16).await;
    assert_eq!(last().await, (vec![10, 11, 12], 12));
}

/// Its age is that at the start of the search: counting after a slow page would take longer than a
/// request may.
#[tokio::test]
async fn a_total_that_gets_too_old_during_a_search_is_used() {
    const MAX_AGE: Duration = Duration::from_secs(2);
    let catalogue = eleven_sets().await;
    let engine = engine(&catalogue).with_max_total_age(MAX_AGE);
    let query = SearchQuery::default();
    let counted_from = Instant::now();
    assert_eq!(page(&engine, &query, 1, 3).await.total, 11);
    let counted_before = Instant::now();
    catalogue.put(&titled(12, "Title 9"), 12).await;
    let mut lock = OpenTransaction::begin(catalogue.database.url());
    lock.run("LOCK TABLE shown_chartsets IN ACCESS EXCLUSIVE MODE");
    let search = tokio::spawn(async move { page(&engine, &query, 1, 3).await.total });
    catalogue.wait_for_blocked_sessions(1).await;
    assert!(counted_from.elapsed() < MAX_AGE, "the search began in time");
    tokio::time::sleep_until((counted_before + MAX_AGE).into()).await;
    lock.commit();
    assert_eq!(search.await.unwrap(), 11);
}

/// The items are those of now, and the total never contradicts them.
#[tokio::test]
async fn a_recent_total_is_used_after_a_change() {
    let catalogue = eleven_sets().await;
    let engine = engine(&catalogue);
    let query = SearchQuery { sort: Sort::Title, direction: Direction::Ascending, ..SearchQuery::default() };
    let listed = async |number| {
        let page = page(&engine, &query, number, 3).await;
        (ids(&page), page.total)
    };
    assert_eq!(listed(4).await, (vec![10, 11], 11));
    let counted_at = catalogue.store.feed_position().await.unwrap();
    assert_eq!(page(&engine, &query, 1, 3).await.position, None);
    catalogue.put(&titled(12, "Title 9"), 12).await;
    catalogue.put(&titled(13, "Title 9"), 12).await;
    assert_eq!(listed(1).await, (vec![1, 2, 3], 11), "the list goes on: the total is the old one");
    assert_eq!(page(&engine, &query, 1, 3).await.position, Some(counted_at), "a cache must not keep it");
    assert_eq!(listed(4).await, (vec![10, 11, 12], 12), "at least those of the page");
    assert_eq!(listed(5).await, (vec![13], 13), "past the old end, and the list ends here");
    assert_eq!(listed(6).await, (vec![], 11));
    for number in [4, 5, 6] {
        catalogue.remove(id(number), 14).await;
    }
    assert_eq!(listed(3).await, (vec![10, 11, 12], 11));
    assert_eq!(listed(4).await, (vec![13], 10));
    let all = page(&engine, &query, 1, 60).await;
    assert_eq!((all.items.len(), all.total), (10, 10));
}
