//! Free text and parts of creator names, on a real node.

use chart_index_domain::search::{Direction, IndexedChartset, SearchIndex, SearchQuery, Sort};
use chart_index_search::MeilisearchEngine;

use crate::support::{Server, fill, ids, slow_engine, titled};

async fn found(engine: &MeilisearchEngine, text: &str) -> Vec<u64> {
    let (sort, direction) = (Sort::Updated, Direction::Ascending);
    let query = SearchQuery { text: Some(text.into()), sort, direction, ..SearchQuery::default() };
    let page = engine.search(&query).await.unwrap();
    assert_eq!(page.total, page.items.len() as u64);
    ids(&page)
}

async fn engine_with_titles(titles: &[&str]) -> (Server, MeilisearchEngine) {
    let server = Server::find();
    let sets: Vec<IndexedChartset> = (1..).zip(titles).map(|(number, title)| titled(number, title)).collect();
    fill(&server.config, &sets, 1).await;
    let engine = slow_engine(&server.config).await;
    (server, engine)
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn every_word_matches_and_the_last_as_a_prefix() {
    let titles = [
        "Goin' Under",
        "Under the Café",
        "宙の旋律 -the melody-",
        "旋律OP2",
        "ＣＯＯＬ undertow",
        "한국어 노래",
        "Ночь Ελλάδα",
        "Straße",
    ];
    let (server, engine) = engine_with_titles(&titles).await;
    for (text, expected) in [
        ("under", vec![1, 2, 5]),
        ("under cafe", vec![2]),
        ("UNDER CA", vec![2]),
        ("goin'", vec![1]),
        ("cool und", vec![5]),
        ("旋律", vec![3, 4]),
        ("の旋", vec![3]),
        ("旋律の", vec![]),
        ("律 melo", vec![3]),
        ("melody 律", vec![3]),
        ("旋律op", vec![4]),
        ("artist 3", vec![3]),
        ("한국 노", vec![6]),
        ("국어 노", vec![6]),
        ("한구 노래", vec![]),
        ("ноч", vec![7]),
        ("ελλαδα", vec![7]),
        ("strasse", vec![8]),
        // Typos.
        ("undertwo", vec![5]),
        ("meoldy 旋", vec![3]),
        // No typos in digits.
        ("artist 12345", vec![]),
    ] {
        assert_eq!(found(&engine, text).await, expected, "{text:?}");
    }
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn query_syntax_is_searched_as_text() {
    let (server, engine) = engine_with_titles(&["100% \"quoted phrase\" -minus (x) OR AND", "other"]).await;
    for (text, expected) in [
        ("\"phrase quoted\"", vec![1]),
        ("\"quoted", vec![1]),
        ("-quoted", vec![1]),
        ("other -quoted", vec![]),
        ("- other", vec![2]),
        ("minus", vec![1]),
        ("or and", vec![1]),
        ("\"\"", vec![]),
        ("100%", vec![1]),
        ("😀", vec![]),
    ] {
        assert_eq!(found(&engine, text).await, expected, "{text:?}");
    }
    for long in ["\u{fdf2}".repeat(200), "宙".repeat(200), "a".repeat(200), "宙a".repeat(5)] {
        assert_eq!(found(&engine, &long).await, [0; 0], "{long:?}");
    }
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn best_match_comes_first() {
    let titles = ["Last Night of All", "Nightfall", "Night", "Nigth", "Other"];
    let (server, engine) = engine_with_titles(&titles).await;
    let text = Some("night".into());
    let query = SearchQuery { text, sort: Sort::Relevance, ..SearchQuery::default() };
    let order = ids(&engine.search(&query).await.unwrap());
    assert_eq!((order[0], order.last().copied(), order.len()), (3, Some(4), 4), "{order:?}");
    server.close().await;
}
