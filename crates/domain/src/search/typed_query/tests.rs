//! Tests of typed queries.

use proptest::prelude::*;

use super::*;
use crate::KeyCount;
use crate::search::{ChartFilter, parse_query_string};

fn range(min: f64, max: f64) -> Bounds {
    Bounds { min: Some(min), max: Some(max) }
}

fn min(min: f64) -> Bounds {
    Bounds { min: Some(min), max: None }
}

fn max(max: f64) -> Bounds {
    Bounds { min: None, max: Some(max) }
}

fn keys(keys: &[u8]) -> KeySet {
    keys.iter().map(|keys| KeyCount::try_from(*keys).unwrap()).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn filters_are_parsed() {
    let none = TypedQuery::default;
    for (query, expected) in [
        ("", none()),
        ("keys=4", TypedQuery { keys: keys(&[4]), ..none() }),
        ("keys:7,4", TypedQuery { keys: keys(&[4, 7]), ..none() }),
        ("keys=5-6", TypedQuery { keys: keys(&[5, 6]), ..none() }),
        ("keys>=6", TypedQuery { keys: keys(&[6, 7]), ..none() }),
        ("keys<99 keys>4 keys=4,5", TypedQuery { keys: keys(&[5]), ..none() }),
        ("rating>5", TypedQuery { rating: min(501.0), ..none() }),
        ("rating>5.005", TypedQuery { rating: min(501.0), ..none() }),
        ("rating>=5.005", TypedQuery { rating: min(501.0), ..none() }),
        ("rating<5", TypedQuery { rating: max(499.0), ..none() }),
        ("rating<5.005", TypedQuery { rating: max(500.0), ..none() }),
        ("rating<=5.27", TypedQuery { rating: max(527.0), ..none() }),
        ("rating=4-5.5", TypedQuery { rating: range(400.0, 550.0), ..none() }),
        ("rating>4 rating<6", TypedQuery { rating: range(401.0, 599.0), ..none() }),
        ("rating>4 rating>5 rating>3", TypedQuery { rating: min(501.0), ..none() }),
        ("ln<20%", TypedQuery { ln_share: max(19.0), ..none() }),
        ("ln=0", TypedQuery { ln_share: range(0.0, 0.0), ..none() }),
        ("notes>999", TypedQuery { notes: min(1_000.0), ..none() }),
        ("bpm=170-180", TypedQuery { bpm_main: range(170.0, 180.0), ..none() }),
        ("BPM>174.5", TypedQuery { bpm_main: min(174.501), ..none() }),
        ("bpm<174.5", TypedQuery { bpm_main: max(174.499), ..none() }),
        ("bpm>=174.5", TypedQuery { bpm_main: min(174.5), ..none() }),
        ("density>8 density<=10.5", TypedQuery { density: range(8.001, 10.5), ..none() }),
        ("length<1:40", TypedQuery { length_ms: max(99_999.0), ..none() }),
        ("length=1:30-100s", TypedQuery { length_ms: range(90_000.0, 100_000.0), ..none() }),
        ("creator:Ann", TypedQuery { creator: Some("Ann".into()), ..none() }),
        ("creator=\" two words \"", TypedQuery { creator: Some("two words".into()), ..none() }),
        ("source:BETAPACK", TypedQuery { source: Some(SourceKind::BetaPack), ..none() }),
        ("stream>=50", TypedQuery { patterns: [(Pattern::Stream, 50)].into(), ..none() }),
        (
            "stream>50 jack>=1% stream>=20",
            TypedQuery { patterns: [(Pattern::Jack, 1), (Pattern::Stream, 51)].into(), ..none() },
        ),
        ("4K", TypedQuery { keys: keys(&[4]), ..none() }),
        (
            "stars>5 mapper:Ann lns<20 nps>8 key=7",
            TypedQuery {
                rating: min(501.0),
                creator: Some("Ann".into()),
                ln_share: max(19.0),
                density: min(8.001),
                keys: keys(&[7]),
                ..none()
            },
        ),
    ] {
        assert_eq!(TypedQuery::parse(query), expected, "{query}");
    }
}

#[test]
fn names_and_tags_are_parsed() {
    let none = TypedQuery::default;
    for (query, expected) in [
        ("title=Harbour", TypedQuery { title: Some("Harbour".into()), ..none() }),
        ("song:\" Two words \"", TypedQuery { title: Some("Two words".into()), ..none() }),
        ("artist:かめりあ", TypedQuery { artist: Some("かめりあ".into()), ..none() }),
        ("tag:Pokémon tags=b tag:pokemon", TypedQuery { tags: set(&["b", "pokemon"]), ..none() }),
        (
            "-title:\"The  Remix\" -song=b!",
            TypedQuery { excluded_titles: set(&["b", "the remix"]), ..none() },
        ),
        ("-artist:É", TypedQuery { excluded_artists: set(&["e"]), ..none() }),
        ("-tag:Pokémon -tag=pokemon", TypedQuery { excluded_tags: set(&["pokemon"]), ..none() }),
        ("-tag:\"two  words\"", TypedQuery { excluded_tags: set(&["two words"]), ..none() }),
        ("-creator:É -creator:b", TypedQuery { excluded_creators: set(&["b", "é"]), ..none() }),
    ] {
        assert_eq!(TypedQuery::parse(query), expected, "{query}");
    }
}

#[test]
fn words_that_are_no_filters_stay_text() {
    for (query, text) in [
        ("camellia  keys=4 rating>5\u{3000}ghost", Some("camellia ghost")),
        ("keys=4", None),
        ("melody- - :3 12:30", Some("melody- - :3 12:30")),
        ("\"4k\" \"-the\" \"re:zero\"", Some("4k -the re:zero")),
        ("\"keys=4\" \"two  words\"", Some("keys=4 two  words")),
        ("a \" b", Some("a \" b")),
    ] {
        let parsed = TypedQuery::parse(query);
        assert_eq!((parsed.text.as_deref(), &parsed.hints[..]), (text, &[][..]), "{query}");
    }
}

#[test]
fn malformed_filters_are_text_with_a_hint() {
    for (query, token, reason) in [
        ("keys=9", "keys=9", "accepts key counts from 4 to 7"),
        ("keys=4,9", "keys=4,9", "accepts key counts"),
        ("keys=4,", "keys=4,", "accepts key counts"),
        ("keys>7", "keys>7", "accepts key counts"),
        ("keys=4 keys=7", "keys=7", "contradicts another filter"),
        ("rating>", "rating>", "accepts ratings"),
        ("rating==5", "rating==5", "accepts ratings"),
        ("rating<0", "rating<0", "accepts ratings"),
        ("rating=5-4", "rating=5-4", "accepts ratings"),
        ("rating=4.005", "rating=4.005", "accepts ratings"),
        ("rating>6 rating<4", "rating<4", "contradicts another filter"),
        ("rating>6 rating<=6", "rating<=6", "contradicts another filter"),
        ("bpm=fast", "bpm=fast", "accepts numbers"),
        ("bpm=170-", "bpm=170-", "accepts numbers"),
        ("bpm>170-180", "bpm>170-180", "accepts numbers"),
        ("length=1:4", "length=1:4", "accepts seconds or minutes"),
        ("creator>a", "creator>a", "accepts part of a name"),
        ("creator:\" \"", "creator:\" \"", "accepts part of a name"),
        ("creator:a creator:b", "creator:b", "occurs more than once"),
        ("source:gamma", "source:gamma", "accepts alphaSet or betaPack"),
        ("source:alphaSet source:alphaSet", "source:alphaSet", "occurs more than once"),
        ("8k", "8k", "accepts key counts"),
        ("4k 7k", "7k", "contradicts another filter"),
        ("re:zero", "re:zero", "no filter has this name"),
        ("-genre:a", "-genre:a", "no filter has this name"),
        ("-paraclete", "-paraclete", "only titles, artists, creators and tags are excluded"),
        ("title:", "title:", "accepts words"),
        ("title:!!!", "title:!!!", "accepts words"),
        ("title>a", "title>a", "accepts words"),
        ("title:a title:b", "title:b", "occurs more than once"),
        ("artist:a\"b", "artist:a\"b", "accepts words"),
        ("-artist:!", "-artist:!", "accepts a name"),
        ("tag>a", "tag>a", "accepts a whole tag"),
        ("tag:a\"b", "tag:a\"b", "accepts a whole tag"),
        ("-tag:", "-tag:", "accepts a name"),
        ("-tag>a", "-tag>a", "accepts a name"),
        ("-tag:a\"b", "-tag:a\"b", "accepts a name"),
        ("-keys=4", "-keys=4", "only titles, artists, creators and tags are excluded"),
        ("stream=50", "stream=50", "percentages from 1 to 100"),
        ("stream<50", "stream<50", "percentages from 1 to 100"),
        ("stream>=0", "stream>=0", "percentages from 1 to 100"),
        ("stream>100", "stream>100", "percentages from 1 to 100"),
        (
            "-tag:1 -tag:2 -tag:3 -tag:4 -tag:5 -tag:6 -tag:7 -tag:8 -tag:8 -tag:9",
            "-tag:9",
            "at most 8 are excluded",
        ),
    ] {
        let parsed = TypedQuery::parse(query);
        assert_eq!(parsed.text.as_deref(), Some(token), "{query}");
        assert_eq!(parsed.hints.len(), 1, "{query}");
        assert_eq!(parsed.hints[0].token, token, "{query}");
        assert!(parsed.hints[0].reason.contains(reason), "{query}: {}", parsed.hints[0].reason);
    }
}

#[test]
fn hint_names_every_filter() {
    for (name, _) in TypedQuery::filter_names() {
        assert!(UNKNOWN_FILTER.contains(&format!(" {name}")), "{name}");
    }
}

#[test]
fn query_is_combined_with_other_parameters() {
    let query = parse_query_string(
        "query=a+keys%3D4+rating%3E5+density%3C9+-tag:x+-creator:Y+bpm%3D&bpmMin=100&notesMax=9&sort=relevance",
    );
    let typed = parse_query_string(
        "q=a+bpm%3D&keys=4&ratingMin=5.01&densityMax=9&bpmMin=100&notesMax=9&sort=relevance",
    );
    let typed = typed.unwrap();
    let expected = SearchQuery {
        chart: ChartFilter { density_max: Some(8.999), ..typed.chart },
        excluded_tags: vec!["x".into()],
        excluded_creators: vec!["y".into()],
        hints: vec![Hint {
            token: "bpm=".into(),
            reason: "accepts numbers, as in bpm>=170 or bpm=170-180".into(),
        }],
        ..typed
    };
    assert_eq!(query, Ok(expected));
}

#[test]
fn filter_that_is_given_twice_is_an_error() {
    for (query, parameter) in [
        ("query=a&q=a", "q"),
        ("query=keys:4&keys=4", "keys"),
        ("query=source:alphaSet&source=alphaSet", "source"),
        ("query=creator:a&creator=a", "creator"),
        ("query=bpm:1&mainBpmMin=1", "mainBpmMin"),
        ("query=bpm:1&mainBpmMax=1", "mainBpmMax"),
        ("query=length:1&lengthMax=1", "lengthMax"),
        ("query=density:1&densityMin=1", "densityMin"),
        ("query=density%3C1&densityMax=1", "densityMax"),
        ("query=rating:1&ratingMin=1", "ratingMin"),
        ("query=ln:1&lnMax=1", "lnMax"),
        ("query=notes:1&notesMin=1", "notesMin"),
        ("query=jack%3E1&pattern=stream:1", "pattern"),
    ] {
        let error = parse_query_string(query).expect_err(query);
        assert_eq!(error.parameter, parameter, "{query}");
        assert!(error.reason.starts_with("must not be given with"), "{query}: {}", error.reason);
    }
    assert!(parse_query_string("query=-creator:a&creator=a&q=").is_ok());
    assert!(parse_query_string("query=bpm:1&bpmMin=1").is_ok());
    let long = format!("query={}", "x".repeat(201));
    assert_eq!(parse_query_string(&long).unwrap_err().parameter, "query");
}

#[test]
fn text_and_exclusions_are_typed_again() {
    for (query, typed) in [
        ("a keys=4 rating>5", None),
        ("\"keys=4\"", None),
        ("a -tag:B keys=4 \"b  c\"", Some("\"a b  c\" -tag:b")),
        ("-creator:\"X y\" a -tag:b", Some("a -tag:b -creator:\"x y\"")),
        ("-tag:a", Some("-tag:a")),
        ("\"keys=4\" -tag:a", Some("\"keys=4\" -tag:a")),
        ("keys=9 a", Some("keys=9 a")),
        ("-tag:\"a b\" \"c", Some("-tag:\"a b\" \"c")),
        ("title:\"A  b\" x -song:É tag:T artist:c", Some("x title:\"A  b\" artist:c tag:t -title:e")),
        ("re:zero -title:a", Some("re:zero -title:a")),
        ("\"re:zero\" -title:a", Some("\"re:zero\" -title:a")),
    ] {
        let mut search = SearchQuery::default();
        let mut parsed = TypedQuery::parse(query);
        search.text = parsed.text.take();
        parsed.add_to(&mut search).unwrap();
        assert_eq!(search.typed_query().as_deref(), typed, "{query}");
        if let Some(typed) = typed {
            let again = TypedQuery::parse(typed);
            assert_eq!((again.text, again.hints), (search.text, search.hints), "{query}");
            assert_eq!((again.title, again.artist), (search.title, search.artist), "{query}");
            assert!(again.tags.into_iter().eq(search.tags), "{query}");
            assert!(again.excluded_titles.into_iter().eq(search.excluded_titles), "{query}");
            assert!(again.excluded_artists.into_iter().eq(search.excluded_artists), "{query}");
            assert!(again.excluded_tags.into_iter().eq(search.excluded_tags), "{query}");
            assert!(again.excluded_creators.into_iter().eq(search.excluded_creators), "{query}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed(
        query in "((-?(keys|rating|ln|bpm|length|title|artist|tag|creator|jack|x)([=:<>]=?)[0-9a-z.,:\"-]{0,6}|\\PC{0,4}) ){0,8}",
    ) {
        let parsed = TypedQuery::parse(&query);
        for bounds in [parsed.bpm_main, parsed.length_ms, parsed.density, parsed.rating, parsed.ln_share] {
            prop_assert!(bounds.min.zip(bounds.max).is_none_or(|(min, max)| min <= max));
            prop_assert!(bounds.min.into_iter().chain(bounds.max).all(|bound| bound >= 0.0));
        }
        let characters = parsed.text.map_or(0, |text| text.chars().count());
        prop_assert!(characters <= query.chars().count());
    }

    #[test]
    fn text_without_filters_is_its_words(query in "[^\"=:<>kK-]{0,60}") {
        let words = query.split_whitespace().collect::<Vec<_>>().join(" ");
        let parsed = TypedQuery::parse(&query);
        prop_assert_eq!(parsed, TypedQuery { text: Some(words).filter(|text| !text.is_empty()), ..TypedQuery::default() });
    }

    #[test]
    fn strict_and_inclusive_comparisons_divide_all_values(hundredths in 0_u32..10_000, limit in 0_u32..1_000_000) {
        let limit = format!("{}.{:04}", limit / 10_000, limit % 10_000);
        let matches = |operator: &str| {
            let rating = TypedQuery::parse(&format!("rating{operator}{limit}")).rating;
            !rating.is_unbounded() && rating.contains(f64::from(hundredths))
        };
        let value = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse::<f64>().unwrap();
        let limit = limit.parse::<f64>().unwrap();
        prop_assert_eq!(matches(">"), value > limit);
        prop_assert_eq!(matches(">="), value >= limit);
        prop_assert_eq!(matches("<"), value < limit);
        prop_assert_eq!(matches("<="), value <= limit);
    }
}
