//! Every engine gives the same pages.
//!
//! Over a random catalogue and random query strings, the PostgreSQL engine has to agree with a search written for
//! clarity, which never sees the query string, and Meilisearch with the PostgreSQL engine: the same sets in the same
//! order, and the same total. Free text is
//! where Meilisearch may differ by design, and only so:
//!
//! - it finds all that PostgreSQL finds, and beside that what is mistyped, or follows across the end of a name;
//! - what both find stands in the same order, except in the order of relevance, which each has for itself;
//! - it does not answer at all, and says so, where a text has more than ten words, a part of a creator's name more
//!   than 117 bytes, or relevance is asked for with the worst match first.
//!
//! `CONFORMANCE_QUERIES` and `CONFORMANCE_CHARTSETS` say how many.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chart_index_domain::search::{
    ChartsetPage, Direction, Generation, IndexedChartset, PageRequest, SearchIndex, SearchQuery, Sort,
};
use chart_index_domain::{ReadError, text};
use chart_index_search::UnsupportedQuery;
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::{Random, TestDatabase};
use futures_util::future::join_all;

use crate::catalogue::{Entry, generate};
use crate::memory::expected;
use crate::queries::{Asked, Range, random_query};
use crate::support::{Server, fill, ids, patient_engine};

/// The most sets that are compared one by one where free text is involved.
const LISTED: u64 = 240;

fn from_environment(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

async fn stored(entries: &[Entry]) -> (TestDatabase, PostgresSearch) {
    let database = TestDatabase::create().await;
    let mut config = StoreConfig::new(database.url().parse().unwrap());
    config.statement_timeout = Duration::from_mins(1);
    let store = Store::new(&config);
    store.migrate().await.unwrap();
    for some in entries.chunks(8) {
        let puts = some.iter().map(|entry| store.put_chartset(&entry.draft, entry.indexed.updated_at_ms));
        join_all(puts).await.into_iter().for_each(|put| assert!(put.is_ok(), "{put:?}"));
    }
    (database, PostgresSearch::new(store, CatalogueWatch::disabled()))
}

async fn page(engine: &dyn SearchIndex, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
    engine.search(query, Generation::default()).await
}

/// The number of every set that the query finds, in order.
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

#[tokio::test]
async fn postgresql_agrees_with_a_search_written_for_clarity() {
    let mut random = Random::new(20_260_101);
    let sets = from_environment("CONFORMANCE_CHARTSETS", 300).min(2_000);
    let entries = generate(sets, &mut random);
    let (_database, postgres) = stored(&entries).await;
    let (mut found, queries) = (0, from_environment("CONFORMANCE_QUERIES", 1_000));
    for _ in 0..queries {
        let asked = random_query(&entries, &mut random);
        let expected = expected(&entries, &asked);
        let given = page(&postgres, &asked.query()).await.unwrap();
        assert_eq!(given, expected, "{}: {asked:?}", asked.query_string());
        found += u32::from(!expected.items.is_empty());
    }
    assert!(found > queries / 4, "only {found} queries found anything");
}

/// Ends are included, to the millisecond, whatever binary fraction a bound in seconds has.
#[tokio::test]
async fn a_set_is_found_at_the_ends_of_its_lengths() {
    let entries = generate(150, &mut Random::new(20_260_103));
    let (_database, postgres) = stored(&entries).await;
    for entry in &entries {
        let set = &entry.indexed.chartset;
        let up_to_its_shortest = Range { min: None, max: Some(set.length_min_ms.into()) };
        let from_its_longest = Range { min: Some(set.length_max_ms.into()), max: None };
        for length_ms in [up_to_its_shortest, from_its_longest] {
            let asked = Asked { length_ms, ..Asked::default() };
            let given = page(&postgres, &asked.query()).await.unwrap();
            assert_eq!(given, expected(&entries, &asked), "{}", asked.query_string());
        }
    }
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn meilisearch_agrees_with_postgresql() {
    let server = Server::find();
    let mut random = Random::new(20_260_102);
    let sets = from_environment("CONFORMANCE_CHARTSETS", 400);
    let begun = Instant::now();
    let entries = generate(sets, &mut random);
    let (_database, postgres) = stored(&entries).await;
    let indexed: Vec<IndexedChartset> = entries.iter().map(|entry| entry.indexed.clone()).collect();
    fill(&server.config, &indexed, 1).await;
    let meilisearch = patient_engine(&server.config).await;
    let (filled, begun) = (begun.elapsed(), Instant::now());
    let mut tally = Tally::default();
    for number in 1..=from_environment("CONFORMANCE_QUERIES", 1_000) {
        let query = random_query(&entries, &mut random).query();
        assert_agree(&postgres, &meilisearch, &query, &mut tally).await;
        if number % 1_000 == 0 {
            println!("{number} queries in {:.0?}", begun.elapsed());
        }
    }
    println!("{sets} sets filled in {filled:.0?}; {tally:?} in {:.0?}", begun.elapsed());
    assert!(tally.equal > tally.text && tally.text > tally.unanswerable, "{tally:?}");
    server.close().await;
}

/// How many queries were compared in which way.
#[derive(Debug, Default)]
struct Tally {
    /// Without text, or with one that has no words: the pages are equal.
    equal: u32,
    /// With text: what PostgreSQL finds is found, in the same order.
    text: u32,
    /// Of those, how many found more.
    more: u32,
    /// Not answered, as the rule says.
    unanswerable: u32,
    /// Pages that held anything.
    found: u32,
}

async fn assert_agree(
    postgres: &PostgresSearch,
    engine: &dyn SearchIndex,
    query: &SearchQuery,
    tally: &mut Tally,
) {
    let expected = page(postgres, query).await.unwrap();
    let given = match page(engine, query).await {
        Ok(given) => given,
        Err(ReadError::Unavailable { source, .. }) if source.is::<UnsupportedQuery>() => {
            assert!(is_unanswerable(query), "{query:?}: {source}");
            tally.unanswerable += 1;
            return;
        }
        Err(error) => panic!("{query:?}: {error:?}"),
    };
    tally.found += u32::from(!expected.items.is_empty());
    if query.text.is_none() || query.matches_nothing() {
        assert_eq!(given, expected, "{query:?}");
        tally.equal += 1;
        return;
    }
    assert!(given.total >= expected.total, "{query:?}: {} of {} found", given.total, expected.total);
    tally.text += 1;
    tally.more += u32::from(given.total > expected.total);
    if given.total > LISTED {
        return;
    }
    let (expected, given) = (listed(postgres, query).await, listed(engine, query).await);
    let wanted: HashSet<u64> = expected.iter().copied().collect();
    let mut common: Vec<u64> = given.iter().copied().filter(|id| wanted.contains(id)).collect();
    let mut expected = expected;
    if query.sort == Sort::Relevance {
        common.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(common, expected, "{query:?}");
}

fn is_unanswerable(query: &SearchQuery) -> bool {
    let words = query.text.as_deref().map_or(0, |text| text::words(text).len());
    let worst_first = query.sort == Sort::Relevance && query.direction == Direction::Ascending && words > 0;
    worst_first || words > 10 || query.creator.as_ref().is_some_and(|part| text::lower_case(part).len() > 117)
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn paging_through_every_order_gives_every_set_once() {
    let entries = generate(400, &mut Random::new(7));
    let (_database, postgres) = stored(&entries).await;
    assert_paging_agrees(&postgres, &entries, &[None, Some("n")]).await;
    let server = Server::find();
    let indexed: Vec<IndexedChartset> = entries.iter().map(|entry| entry.indexed.clone()).collect();
    fill(&server.config, &indexed, 1).await;
    assert_paging_agrees(&patient_engine(&server.config).await, &entries, &[None]).await;
    server.close().await;
}

async fn assert_paging_agrees(engine: &dyn SearchIndex, entries: &[Entry], texts: &[Option<&str>]) {
    for sort in Sort::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            for text in texts {
                let mut asked = Asked { text: text.map(str::to_owned), sort, direction, ..Asked::default() };
                let given = listed(engine, &asked.query()).await;
                let mut wanted = Vec::new();
                for number in 1..=7 {
                    asked.page = PageRequest::clamped(number, 60);
                    wanted.extend(ids(&expected(entries, &asked)));
                }
                assert_eq!(given, wanted, "{}", asked.query_string());
            }
        }
    }
}
