//! Full-text search: words, scripts without spaces, and text with operators of PostgreSQL.

use chart_index_domain::search::{Direction, SearchQuery, Sort};

use crate::support::{Catalogue, chart, folder, ids, titled};

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
async fn every_word_is_required_and_the_last_is_a_prefix() {
    let catalogue = Catalogue::create().await;
    for (number, title) in [
        (1, "Goin' Under"),
        (2, "Under the Café"),
        (3, "宙の旋律 -the melody-"),
        (4, "旋律OP2"),
        (5, "ＣＯＯＬ undertow"),
        (6, "100% :* & | ! (x) 'quoted' \\back"),
    ] {
        catalogue.put(&titled(number, title), number.into()).await;
    }
    for (text, expected) in [
        ("under", vec![1, 2, 5]),
        ("under cafe", vec![2]),
        ("UNDER CA", vec![2]),
        ("unde cafe", vec![]),
        ("goin", vec![1]),
        ("goin'", vec![1]),
        ("cool und", vec![5]),
        ("旋律", vec![3, 4]),
        ("の旋", vec![3]),
        ("旋律の", vec![]),
        ("律 melo", vec![3]),
        ("旋律op", vec![4]),
        ("artist 3", vec![3]),
        ("creator under", vec![1, 2, 5]),
    ] {
        assert_eq!(found(&catalogue, text).await, expected, "{text:?}");
    }
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
    }
    let long = ["\u{fdfa}".repeat(200), "宙".repeat(200), "a".repeat(200), "ab ".repeat(60)];
    for text in long {
        assert_eq!(found(&catalogue, &text).await, [0; 0]);
    }
}

#[tokio::test]
async fn tags_creators_and_romanised_names_are_searched() {
    let catalogue = Catalogue::create().await;
    let mut draft = chart(1);
    draft.metadata.title = "宙".into();
    draft.metadata.title_romanised = Some("Sora".into());
    draft.metadata.artist_romanised = Some("Someone Else".into());
    draft.metadata.creator = "Mapper".into();
    draft.metadata.tags = vec!["video-game".into()];
    catalogue.put(&folder(1, [draft]), 1).await;
    for text in ["sora", "someone else", "mapper", "game", "宙 video"] {
        assert_eq!(found(&catalogue, text).await, [1], "{text:?}");
    }
    assert_eq!(found(&catalogue, "difficulty").await, [0; 0]);
}

#[tokio::test]
async fn the_best_title_match_comes_first() {
    let catalogue = Catalogue::create().await;
    for (number, title) in
        [(1, "Night"), (2, "Nightfall"), (3, "Last Night"), (4, "NIGHT"), (5, "Night Sky"), (6, "A Night")]
    {
        // Pairs have the same time, so that the id decides.
        catalogue.put(&titled(number, title), i64::from(number / 2)).await;
    }
    let mut query =
        SearchQuery { text: Some("night".into()), sort: Sort::Relevance, ..SearchQuery::default() };
    assert_eq!(ids(&catalogue.search(&query).await), [4, 1, 5, 2, 6, 3]);
    query.direction = Direction::Ascending;
    assert_eq!(ids(&catalogue.search(&query).await), [3, 6, 2, 5, 1, 4]);
    query.text = None;
    assert_eq!(ids(&catalogue.search(&query).await), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn creator_parts_match_literally() {
    let catalogue = Catalogue::create().await;
    let names = ["100%_Real", "100xyReal", "back\\slash", "Ünïcode 作譜者", "it's \"quoted\"", "a😀b"];
    for (number, name) in (1..).zip(names) {
        let mut draft = chart(number);
        draft.metadata.creator = name.into();
        catalogue.put(&folder(number.into(), [draft]), 1).await;
    }
    for (creator, expected) in [
        ("100", vec![1, 2]),
        ("%", vec![1]),
        ("%_r", vec![1]),
        ("_", vec![1]),
        ("\\", vec![3]),
        ("k\\S", vec![3]),
        ("ÜNÏ", vec![4]),
        ("uni", vec![]),
        ("譜", vec![4]),
        ("'", vec![5]),
        ("\"QUOTED\"", vec![5]),
        ("😀", vec![6]),
        ("e", vec![1, 2, 4, 5]),
        ("\0", vec![]),
    ] {
        let query = SearchQuery { creator: Some(creator.into()), ..SearchQuery::default() };
        assert_eq!(ids(&catalogue.search(&query).await), expected, "{creator:?}");
    }
}
