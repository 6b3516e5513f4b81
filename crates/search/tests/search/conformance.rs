//! All engines return the same pages.
//!
//! For random catalogues and query strings, the PostgreSQL engine is compared with a reference implementation,
//! which never sees the query string, and Meilisearch with the PostgreSQL engine: the same chartsets in the
//! same order, the same total, and the same histogram of ratings. Only with free text may Meilisearch differ:
//!
//! - it also finds words with typos, and phrases across the end of a name;
//! - by relevance, each engine has its own order;
//! - it rejects a text of more than ten words, part of a creator's name above 117 bytes, ascending relevance,
//!   and several conditions for one chart.
//!
//! The environment variables `CONFORMANCE_QUERIES` and `CONFORMANCE_CHARTSETS` set the numbers.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chart_index_domain::search::{
    After, ChartsetPage, Direction, IndexedChartset, PageRequest, SearchIndex, SearchQuery, Sort,
    parse_query_string,
};
use chart_index_domain::{ReadError, text};
use chart_index_search::UnsupportedQuery;
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::{Random, TestDatabase};
use futures_util::future::join_all;

use crate::random_catalogue::{Entry, generate};
use crate::random_queries::{RandomQuery, Range, random_query};
use crate::reference_search::{expected, expected_histogram};
use crate::support::{Server, fill, ids, slow_engine};

/// Results of free text are compared in full up to this number of chartsets.
const MAX_COMPARED: u64 = 240;

fn from_environment(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A database with these entries, and its engine.
pub(crate) async fn stored(entries: &[Entry]) -> (TestDatabase, PostgresSearch) {
    let database = TestDatabase::migrated().await;
    let mut config = StoreConfig::new(database.url().parse().unwrap());
    config.statement_timeout = Duration::from_mins(1);
    let store = Store::new(&config);
    for chunk in entries.chunks(8) {
        let puts = chunk.iter().map(|entry| store.put_chartset(&entry.draft, entry.indexed.updated_at_ms));
        join_all(puts).await.into_iter().for_each(|put| assert!(put.is_ok(), "{put:?}"));
    }
    (database, PostgresSearch::new(store, CatalogueWatch::disabled()))
}

/// A page without its position, in which engines differ.
async fn page(engine: &dyn SearchIndex, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
    Ok(ChartsetPage { position: None, ..engine.search(query).await? })
}

/// The numbers of all chartsets that the query finds, in order.
async fn listed(engine: &dyn SearchIndex, query: &SearchQuery) -> Vec<u64> {
    let mut listed = Vec::new();
    for number in 1.. {
        let query = SearchQuery { page: PageRequest::clamped(number, 60), ..query.clone() };
        let page = page(engine, &query).await.unwrap();
        listed.extend(ids(&page));
        if page.items.len() < 60 {
            assert_eq!(listed.len() as u64, page.total, "{query:?}");
            break;
        }
    }
    listed
}

/// The same, read by cursor.
async fn walked(engine: &dyn SearchIndex, query: &SearchQuery) -> Vec<u64> {
    let mut walked = Vec::new();
    let mut query =
        SearchQuery { after: Some(After::Start), page: PageRequest::clamped(1, 7), ..query.clone() };
    loop {
        let page = page(engine, &query).await.unwrap();
        walked.extend(ids(&page));
        let Some(next) = page.next else { break walked };
        assert_eq!(page.items.len(), 7, "{query:?}");
        // As a client sends it.
        let order = format!("sort={}&order={}", query.sort.as_str(), query.direction.as_str());
        let cursor = format!("q=a&perPage=7&{order}&after={}", query.cursor_after(&next));
        let parsed = parse_query_string(&cursor).unwrap();
        query = SearchQuery { after: parsed.after, page: parsed.page, ..query };
    }
}

#[tokio::test]
async fn postgresql_agrees_with_the_reference() {
    let mut random = Random::new(20_260_101);
    let sets = from_environment("CONFORMANCE_CHARTSETS", 300).min(2_000);
    let entries = generate(sets, &mut random);
    let (_database, postgres) = stored(&entries).await;
    let (mut found, queries) = (0, from_environment("CONFORMANCE_QUERIES", 1_000));
    for _ in 0..queries {
        let query = random_query(&entries, &mut random);
        let expected = expected(&entries, &query);
        let actual = page(&postgres, &query.parsed()).await.unwrap();
        assert_eq!(actual, expected, "{}: {query:?}", query.query_string());
        let histogram = postgres.rating_histogram(&query.parsed()).await.unwrap();
        let expected_histogram = expected_histogram(&entries, &query);
        assert_eq!(histogram.chartsets, expected_histogram, "{}: {query:?}", query.query_string());
        found += u32::from(!expected.items.is_empty());
        if random.one_in(10) && expected.total <= MAX_COMPARED {
            let query = query.parsed();
            assert_eq!(walked(&postgres, &query).await, listed(&postgres, &query).await, "{query:?}");
        }
    }
    assert!(found > queries / 4, "only {found} queries found anything");
}

/// Bounds are inclusive to the millisecond, although they are given as decimal seconds.
#[tokio::test]
async fn length_bounds_are_inclusive() {
    let entries = generate(150, &mut Random::new(20_260_103));
    let (_database, postgres) = stored(&entries).await;
    for entry in &entries {
        let set = &entry.indexed.chartset;
        let up_to_shortest = Range { min: None, max: Some(set.length_min_ms.into()) };
        let from_longest = Range { min: Some(set.length_max_ms.into()), max: None };
        for length_ms in [up_to_shortest, from_longest] {
            let query = RandomQuery { length_ms, ..RandomQuery::default() };
            let actual = page(&postgres, &query.parsed()).await.unwrap();
            assert_eq!(actual, expected(&entries, &query), "{}", query.query_string());
        }
    }
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn meilisearch_agrees_with_postgresql() {
    let server = Server::find();
    let mut random = Random::new(20_260_102);
    let sets = from_environment("CONFORMANCE_CHARTSETS", 400);
    let start = Instant::now();
    let entries = generate(sets, &mut random);
    let (_database, postgres) = stored(&entries).await;
    let indexed: Vec<IndexedChartset> = entries.iter().map(|entry| entry.indexed.clone()).collect();
    fill(&server.config, &indexed, 1).await;
    let meilisearch = slow_engine(&server.config).await;
    let (filled, start) = (start.elapsed(), Instant::now());
    let mut tally = Tally::default();
    for number in 1..=from_environment("CONFORMANCE_QUERIES", 1_000) {
        let query = random_query(&entries, &mut random).parsed();
        assert_agree(&postgres, &meilisearch, &query, &mut tally).await;
        if number % 1_000 == 0 {
            println!("{number} queries in {:.0?}", start.elapsed());
        }
    }
    println!("{sets} sets filled in {filled:.0?}; {tally:?} in {:.0?}", start.elapsed());
    assert!(tally.equal > tally.text && tally.text > tally.unsupported, "{tally:?}");
    server.close().await;
}

/// The number of queries by the kind of comparison.
#[derive(Debug, Default)]
struct Tally {
    /// Without words: the pages are equal.
    equal: u32,
    /// With text: Meilisearch finds all that PostgreSQL finds, in the same order.
    text: u32,
    /// Those of `text` for which Meilisearch found more.
    more: u32,
    /// Not supported by Meilisearch.
    unsupported: u32,
    /// Pages that were not empty.
    found: u32,
}

async fn assert_agree(
    postgres: &PostgresSearch,
    engine: &dyn SearchIndex,
    query: &SearchQuery,
    tally: &mut Tally,
) {
    let expected = page(postgres, query).await.unwrap();
    let actual = match page(engine, query).await {
        Ok(actual) => actual,
        Err(ReadError::Unsupported { source, .. }) => {
            assert!(source.is::<UnsupportedQuery>(), "{source}");
            assert!(is_unsupported(query) && !engine.supports(query), "{query:?}: {source}");
            tally.unsupported += 1;
            return;
        }
        Err(error) => panic!("{query:?}: {error:?}"),
    };
    assert!(engine.supports(query), "{query:?}");
    tally.found += u32::from(!expected.items.is_empty());
    if query.text.is_none() || query.matches_nothing() {
        assert_eq!(actual, expected, "{query:?}");
        assert_histograms_agree(postgres, engine, query).await;
        tally.equal += 1;
        return;
    }
    assert!(actual.total >= expected.total, "{query:?}: {} of {} found", actual.total, expected.total);
    tally.text += 1;
    tally.more += u32::from(actual.total > expected.total);
    if actual.total == expected.total {
        assert_histograms_agree(postgres, engine, query).await;
    }
    if actual.total > MAX_COMPARED {
        return;
    }
    let (expected, actual) = (listed(postgres, query).await, listed(engine, query).await);
    let expected_ids: HashSet<u64> = expected.iter().copied().collect();
    let mut common: Vec<u64> = actual.iter().copied().filter(|id| expected_ids.contains(id)).collect();
    let mut expected = expected;
    if query.sort == Sort::Relevance {
        common.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(common, expected, "{query:?}");
}

async fn assert_histograms_agree(postgres: &PostgresSearch, engine: &dyn SearchIndex, query: &SearchQuery) {
    let actual = engine.rating_histogram(query).await;
    if is_unsupported(&query.rated()) && !query.matches_nothing() {
        assert!(matches!(actual, Err(ReadError::Unsupported { .. })), "{query:?}: {actual:?}");
        return;
    }
    let expected = postgres.rating_histogram(query).await.unwrap();
    assert_eq!(actual.unwrap().chartsets, expected.chartsets, "{query:?}");
}

fn is_unsupported(query: &SearchQuery) -> bool {
    let words = query.text.as_deref().map_or(0, |text| text::words(text).len());
    let worst_first = query.sort == Sort::Relevance && query.direction == Direction::Ascending && words > 0;
    let of_one_chart = query.chart_conditions().is_some_and(|conditions| {
        let is_in_documents = conditions.bpm.is_unbounded() && conditions.length_ms.is_unbounded();
        conditions.values.len() > 1 || !is_in_documents
    });
    worst_first
        || of_one_chart
        || words > 10
        || query.creator.as_ref().is_some_and(|part| text::fold_case(part).len() > 117)
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn all_pages_together_have_every_chartset_once() {
    let entries = generate(400, &mut Random::new(7));
    let (_database, postgres) = stored(&entries).await;
    assert_paging_agrees(&postgres, &entries, &[None, Some("n")], true).await;
    let server = Server::find();
    let indexed: Vec<IndexedChartset> = entries.iter().map(|entry| entry.indexed.clone()).collect();
    fill(&server.config, &indexed, 1).await;
    assert_paging_agrees(&slow_engine(&server.config).await, &entries, &[None], false).await;
    server.close().await;
}

async fn assert_paging_agrees(
    engine: &dyn SearchIndex,
    entries: &[Entry],
    texts: &[Option<&str>],
    reads_by_cursor: bool,
) {
    for &sort in Sort::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            for text in texts {
                let mut query =
                    RandomQuery { text: text.map(str::to_owned), sort, direction, ..RandomQuery::default() };
                let actual = listed(engine, &query.parsed()).await;
                if reads_by_cursor {
                    assert_eq!(walked(engine, &query.parsed()).await, actual, "{}", query.query_string());
                }
                let mut expected_ids = Vec::new();
                for number in 1..=7 {
                    query.page = PageRequest::clamped(number, 60);
                    expected_ids.extend(ids(&expected(entries, &query)));
                }
                assert_eq!(actual, expected_ids, "{}", query.query_string());
            }
        }
    }
}
