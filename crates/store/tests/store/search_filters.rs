//! Filters that the queries of the conformance suite do not have (`crates/search/tests/search/conformance.rs`).

use chart_index_domain::ChartsetDraft;
use chart_index_domain::search::parse_query_string;

use crate::support::{Catalogue, alpha, beta, chart, folder, ids};

#[tokio::test]
async fn sets_are_found_by_their_source() {
    let catalogue = Catalogue::create().await;
    for (number, exact_source) in [(1, Some(alpha(5))), (2, Some(beta(5))), (3, None)] {
        let draft = ChartsetDraft { exact_source, ..folder(number.into(), [chart(number)]) };
        catalogue.put(&draft, 10).await;
    }
    for (query, expected) in [
        ("set=5", vec![1]),
        ("set=5&keys=4", vec![]),
        ("pack=5", vec![2]),
        ("pack=6", vec![]),
        ("pack=5&q=title+2", vec![2]),
        ("pack=5&q=title+1", vec![]),
    ] {
        let page = catalogue.search(&parse_query_string(query).unwrap()).await;
        assert_eq!((ids(&page), page.total), (expected.clone(), expected.len() as u64), "{query}");
    }
}

/// Words of a title and of an artist match like those of a text, but in that name alone; a tag is a whole one.
#[tokio::test]
async fn titles_artists_and_tags_match_or_are_excluded() {
    let catalogue = Catalogue::create().await;
    for (number, title, artist, romanised, tags) in [
        (1, "Harbour Lights", "Camellia", None, &["two words", "anime"][..]),
        (2, "Camellia", "Harbour", None, &["anime"]),
        (3, "椿の歌", "かめりあ", Some("Kamelia"), &["words"]),
    ] {
        let mut draft = chart(number);
        (draft.metadata.title, draft.metadata.artist) = (title.into(), artist.into());
        draft.metadata.artist_romanised = romanised.map(str::to_owned);
        draft.metadata.tags = tags.iter().map(ToString::to_string).collect();
        catalogue.put(&folder(number.into(), [draft]), 10).await;
    }
    for (typed, expected) in [
        ("title:harb", vec![1]),
        ("artist:HARBOUR", vec![2]),
        ("title:%22lights+harbour%22", vec![1]),
        ("title:%22harb+lights%22", vec![]),
        ("title:の歌", vec![3]),
        ("artist:kamelia", vec![3]),
        ("title:camellia+artist:harbour", vec![2]),
        ("camellia+title:harbour", vec![1]),
        ("camellia+-title:harbour", vec![2]),
        ("-artist:camellia", vec![2, 3]),
        ("-title:camellia+-title:harbour", vec![3]),
        ("-artist:%22camellia+x%22", vec![1, 2, 3]),
        ("tag:ANIME", vec![1, 2]),
        ("tag:%22two++words%22", vec![1]),
        ("tag:words", vec![3]),
        ("tag:anime+tag:words", vec![]),
        ("tag:anime+-tag:%22two+words%22", vec![2]),
        ("!+tag:anime", vec![]),
    ] {
        for parameters in ["", "&sort=title", "&sort=relevance", "&after=start&perPage=1", "&creator=creator"]
        {
            let query = parse_query_string(&format!("query={typed}{parameters}")).unwrap();
            assert_eq!(query.hints, [], "{typed}");
            let page = catalogue.search(&query).await;
            let mut found = ids(&page);
            found.sort_unstable();
            let first = if query.after.is_some() { expected.len().min(1) } else { expected.len() };
            assert_eq!(found.len(), first, "{typed}{parameters}");
            assert!(found.iter().all(|id| expected.contains(id)), "{typed}{parameters}: {found:?}");
            assert_eq!(page.total, expected.len() as u64, "{typed}{parameters}");
        }
    }
}
