//! Texts and parts of names with the syntax of PostgreSQL.

use chart_index_domain::search::{Direction, SearchQuery, Sort};

use crate::support::{Catalogue, ids, titled};

async fn found(catalogue: &Catalogue, text: &str) -> Vec<u64> {
    let query = SearchQuery {
        text: Some(text.into()),
        sort: Sort::Updated,
        direction: Direction::Ascending,
        ..SearchQuery::default()
    };
    let page = catalogue.search(&query).await;
    assert_eq!(page.total, page.items.len() as u64);
    ids(&page)
}

#[tokio::test]
async fn operators_of_postgresql_are_plain_text() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&titled(1, "100% :* & | ! (x) 'quoted' \\back 😀 a_b"), 1).await;
    catalogue.put(&titled(2, "other"), 2).await;
    for (text, expected) in [
        ("'quoted'", vec![1]),
        ("''", vec![]),
        (":*", vec![]),
        ("&|!()", vec![]),
        ("x & !x", vec![1]),
        ("quoted | other", vec![]),
        ("\\back", vec![1]),
        ("\\", vec![]),
        ("😀", vec![]),
        ("😀 other", vec![2]),
        ("100%", vec![1]),
        ("%", vec![]),
        ("a_b", vec![1]),
        ("axb", vec![]),
        ("'; DROP TABLE chartsets; --", vec![]),
        ("$9", vec![]),
        ("\0", vec![]),
    ] {
        assert_eq!(found(&catalogue, text).await, expected, "{text:?}");
        let by_creator = SearchQuery { creator: Some(text.into()), ..SearchQuery::default() };
        assert_eq!(catalogue.search(&by_creator).await.total, 0, "{text:?}");
    }
    let long = ["\u{fdfa}".repeat(200), "宙".repeat(200), "a".repeat(200), "ab ".repeat(60)];
    for text in long {
        assert_eq!(found(&catalogue, &text).await, [0; 0]);
    }
}
