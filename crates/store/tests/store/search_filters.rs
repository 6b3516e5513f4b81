//! Every filter, sort and page on three chartsets.

use chart_index_domain::search::{
    Bounds, Direction, PageRequest, SearchQuery, Sort, TypedQuery, parse_query_string,
};
use chart_index_domain::{ChartsetDraft, KeyCount, PublicSource, SourceKind};

use crate::support::{Catalogue, alpha, beta, chart, folder, ids};

/// Set 1: 4 keys, BPM 100 to 110, 60 s, density 10. Set 2: 4 and 7 keys, 120 to 200, 90 to 180 s, density 30.
/// Set 3: 7 keys, 110 to 110, 60 s, density 20. The main BPM is 121.5, 122.5 and 123.5, and 124.5.
async fn three_sets() -> Catalogue {
    let catalogue = Catalogue::create().await;
    let draft = |number, keys: u8, bpm: (f64, f64), length_ms, density_peak, title: &str| {
        let mut draft = chart(number);
        draft.numbers.keys = KeyCount::try_from(keys).unwrap();
        (draft.numbers.bpm_min, draft.numbers.bpm_max) = bpm;
        draft.numbers.length_ms = length_ms;
        draft.numbers.density_peak = density_peak;
        draft.metadata.title = title.into();
        draft
    };
    let one = folder(1, [draft(1, 4, (100.0, 110.0), 60_000, 10.0, "émile")]);
    let two = [
        draft(2, 4, (120.0, 150.0), 90_000, 30.0, "Zoo"),
        draft(3, 7, (140.0, 200.0), 180_000, 25.0, "ignored"),
    ];
    let three = folder(3, [draft(4, 7, (110.0, 110.0), 60_000, 20.0, "Élan")]);
    catalogue.put(&ChartsetDraft { exact_source: Some(alpha(5)), ..one }, 30).await;
    catalogue.put(&ChartsetDraft { exact_source: Some(beta(5)), ..folder(2, two) }, 20).await;
    catalogue.put(&three, 10).await;
    catalogue
}

fn keys(keys: &[u8]) -> SearchQuery {
    let keys = keys.iter().map(|keys| KeyCount::try_from(*keys).unwrap()).collect();
    SearchQuery { keys, ..SearchQuery::default() }
}

fn bpm(min: Option<f64>, max: Option<f64>) -> SearchQuery {
    SearchQuery { bpm: Bounds { min, max }, ..SearchQuery::default() }
}

fn length(min: Option<f64>, max: Option<f64>) -> SearchQuery {
    SearchQuery { length_ms: Bounds { min, max }, ..SearchQuery::default() }
}

fn density(min: f64) -> SearchQuery {
    SearchQuery { density_min: Some(min), ..SearchQuery::default() }
}

fn from_source(kind: SourceKind) -> SearchQuery {
    SearchQuery { source: Some(kind), ..SearchQuery::default() }
}

fn published_in(source: PublicSource) -> SearchQuery {
    SearchQuery { published_in: Some(source), ..SearchQuery::default() }
}

#[tokio::test]
async fn filters_select_matching_sets() {
    let catalogue = three_sets().await;
    for (query, expected) in [
        (SearchQuery::default(), vec![1, 2, 3]),
        (published_in(alpha(5)), vec![1]),
        (published_in(beta(5)), vec![2]),
        (published_in(beta(6)), vec![]),
        (SearchQuery { text: Some("zoo".into()), ..published_in(beta(5)) }, vec![2]),
        (SearchQuery { text: Some("elan".into()), ..published_in(beta(5)) }, vec![]),
        (SearchQuery { keys: keys(&[7]).keys, ..published_in(alpha(5)) }, vec![]),
        (keys(&[4]), vec![1, 2]),
        (keys(&[7]), vec![2, 3]),
        (keys(&[4, 7]), vec![1, 2, 3]),
        (keys(&[5, 6]), vec![]),
        (from_source(SourceKind::AlphaSet), vec![1]),
        (from_source(SourceKind::BetaPack), vec![2]),
        (bpm(Some(110.0), None), vec![1, 2, 3]),
        (bpm(Some(110.001), None), vec![2]),
        (bpm(None, Some(110.0)), vec![1, 3]),
        (bpm(None, Some(99.999)), vec![]),
        (bpm(Some(110.5), Some(119.5)), vec![]),
        (bpm(Some(105.0), Some(106.0)), vec![1]),
        (length(Some(60_000.0), Some(60_000.0)), vec![1, 3]),
        (length(Some(60_000.5), None), vec![2]),
        (length(Some(100_000.0), Some(110_000.0)), vec![2]),
        (length(None, Some(89_999.999)), vec![1, 3]),
        (density(20.0), vec![2, 3]),
        (density(30.001), vec![]),
        (SearchQuery { bpm: Bounds { min: Some(105.0), max: None }, ..keys(&[4]) }, vec![1, 2]),
        (SearchQuery { density_min: Some(15.0), ..keys(&[4]) }, vec![2]),
    ] {
        let page = catalogue.search(&query).await;
        assert_eq!(ids(&page), expected, "{query:?}");
        assert_eq!(page.total, expected.len() as u64, "{query:?}");
    }
}

/// An excluded tag is a whole one, folded like a text; an excluded creator is part of a name, folded by case.
#[tokio::test]
async fn excluded_tags_and_creators_do_not_match() {
    let catalogue = Catalogue::create().await;
    for (number, creator, tags) in [
        (1, "Ann, bob_x", &["Pokémon", "two words"][..]),
        (2, "Éva", &["it's | \\ \0", "words"]),
        (3, "", &[]),
    ] {
        let mut draft = chart(number);
        draft.metadata.title = "pokemon".into();
        draft.metadata.creator = creator.into();
        draft.metadata.tags = tags.iter().map(ToString::to_string).collect();
        catalogue.put(&folder(number.into(), [draft]), 10).await;
    }
    for (filters, expected) in [
        ("-tag:pokemon", vec![2, 3]),
        ("-tag:POKÉMON -tag:words", vec![3]),
        ("-tag:\"two  words\"", vec![2, 3]),
        ("-tag:two -tag:poke -tag:x", vec![1, 2, 3]),
        ("-tag:\"it's | \\ \u{fffd}\"", vec![1, 3]),
        ("-creator:ANN", vec![2, 3]),
        ("-creator:B_X", vec![2, 3]),
        ("-creator:bobxx -creator:eva", vec![1, 2, 3]),
        ("-creator:éva -creator:a", vec![3]),
        ("creator:b -creator:ann", vec![]),
        ("-creator:éva -tag:pokemon", vec![3]),
    ] {
        for text in ["", "pokemon ", "pok "] {
            let query = TypedQuery::parse(&format!("{text}{filters}"));
            assert_eq!(query.hints, [], "{filters}");
            let query = SearchQuery {
                text: query.text,
                creator: query.creator,
                excluded_tags: query.excluded_tags.into_iter().collect(),
                excluded_creators: query.excluded_creators.into_iter().collect(),
                ..SearchQuery::default()
            };
            let page = catalogue.search(&query).await;
            assert_eq!(ids(&page), expected, "{query:?}");
            assert_eq!(page.total, expected.len() as u64, "{query:?}");
        }
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

#[tokio::test]
async fn ties_are_ordered_by_ascending_id() {
    use Direction::{Ascending, Descending};
    let catalogue = three_sets().await;
    for (sort, direction, expected) in [
        (Sort::Updated, Descending, [1, 2, 3]),
        (Sort::Updated, Ascending, [3, 2, 1]),
        (Sort::Title, Ascending, [3, 1, 2]),
        (Sort::Title, Descending, [2, 1, 3]),
        (Sort::Artist, Ascending, [1, 2, 3]),
        (Sort::Artist, Descending, [3, 2, 1]),
        (Sort::Bpm, Descending, [2, 1, 3]),
        (Sort::Bpm, Ascending, [1, 3, 2]),
        (Sort::MainBpm, Descending, [3, 2, 1]),
        (Sort::MainBpm, Ascending, [1, 2, 3]),
        (Sort::Length, Descending, [2, 1, 3]),
        (Sort::Length, Ascending, [1, 3, 2]),
        (Sort::Density, Descending, [2, 3, 1]),
        (Sort::Density, Ascending, [1, 3, 2]),
    ] {
        let query = SearchQuery { sort, direction, ..SearchQuery::default() };
        assert_eq!(ids(&catalogue.search(&query).await), expected, "{sort:?} {direction:?}");
    }
}

#[tokio::test]
async fn pages_after_the_last_are_empty() {
    let catalogue = three_sets().await;
    for number in [3, 4, i64::MAX] {
        let page = PageRequest::clamped(number, 2);
        let page = catalogue.search(&SearchQuery { page, ..SearchQuery::default() }).await;
        assert_eq!((page.items.len(), page.total), (0, 3), "{number}");
    }
    let page = PageRequest::clamped(2, 2);
    let page = catalogue.search(&SearchQuery { page, ..SearchQuery::default() }).await;
    assert_eq!((ids(&page), page.total), (vec![3], 3));
}
