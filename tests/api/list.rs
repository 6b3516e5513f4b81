//! `GET /api/chartsets` (docs/api.md, "Chartset list").

use super::*;

/// Chartsets that differ in what filters and sorts use.
fn catalogue() -> Library {
    let library = Library::new();
    let plain = |number, title: &str| ChartSpec { title: title.into(), ..ChartSpec::numbered(number) };
    library.osu("alpha/1 one/a.osu", ChartSpec { bpm: 100.0, creator: "Alice".into(), ..plain(1, "banana") });
    library.osu(
        "alpha/2 two/a.osu",
        ChartSpec { keys: 7, bpm: 200.0, creator: "bob_100%".into(), ..plain(2, "Éclair") },
    );
    library.osu(
        "alpha/2 two/b.osu",
        ChartSpec { keys: 5, bpm: 150.0, creator: "Alice".into(), ..plain(3, "Éclair") },
    );
    let japanese =
        ChartSpec {
            title: "宙の旋律".into(), title_romanised: "Sora no Senritsu".into(), ..plain(4, "")
        };
    library.osu(
        "alpha/3 three/a.osu",
        ChartSpec { tags: "stream jack".into(), artist: "Zoë".into(), ..japanese },
    );
    let notes = (0..8).map(|n| (n * 100, 0, None)).chain([(120_000, 1, None)]).collect();
    library.osu("alpha/no id/a.osu", ChartSpec { notes, ..plain(5, "apple") });
    library.file(
        "beta/9 pack/song/song.sm",
        "#TITLE:cherry;\n#ARTIST:DJ;\n#CREDIT:Carol;\n#BPMS:0=180;\n#NOTES:\n dance-single:\n :\n Hard:\n 9:\n 0:\n1000\n0100\n0010\n0001\n;\n",
    );
    library
}

async fn shared_catalogue() -> Index {
    static CATALOGUE: Shared<Instance> = Shared::empty();
    Index::shared(&CATALOGUE, catalogue).await
}

#[tokio::test]
async fn list_item_has_its_documented_fields() {
    let index = shared_catalogue().await;
    let response = index.get("/api/chartsets?q=eclair").await;
    assert_eq!(response.header("cache-control"), "public, max-age=30");
    assert_eq!(response.header("x-search-engine"), "postgres");
    let list = response.json();
    assert_eq!(fields(&list), ["items", "page", "perPage", "total"]);
    assert_eq!((&list["total"], &list["page"], &list["perPage"]), (&1.into(), &1.into(), &30.into()));
    let item = &list["items"][0];
    let expected = [
        "artist",
        "bpmMax",
        "bpmMin",
        "chartCount",
        "creator",
        "densityMax",
        "downloadUrl",
        "id",
        "keys",
        "lengthMaxMs",
        "lengthMinMs",
        "sourceKind",
        "title",
    ];
    assert_eq!(fields(item), expected);
    let id = item["id"].as_str().unwrap();
    assert!(id.len() == 16 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    assert_eq!(item["downloadUrl"], format!("/go/chartset/{id}"));
    assert_eq!((&item["keys"], &item["chartCount"]), (&serde_json::json!([5, 7]), &2.into()));
    assert_eq!((&item["bpmMin"], &item["bpmMax"]), (&150.0.into(), &200.0.into()));
    assert_eq!((&item["sourceKind"], &item["creator"]), (&"alphaSet".into(), &"Alice, bob_100%".into()));
}

/// Every filter with the titles that match, sorted by title.
#[tokio::test]
async fn filters_match_the_expected_chartsets() {
    let index = shared_catalogue().await;
    for (query, expected) in [
        ("", "apple banana cherry Éclair 宙の旋律"),
        ("unknown=1&q=&keys=&page=", "apple banana cherry Éclair 宙の旋律"),
        ("q=ECLAIR", "Éclair"),
        ("q=ban", "banana"),
        ("q=ana", ""),
        ("q=senritsu+sora", "宙の旋律"),
        ("q=%E6%97%8B%E5%BE%8B", "宙の旋律"),
        ("q=stream+zoe", "宙の旋律"),
        ("q=stream+banana", ""),
        ("q=alice", "banana Éclair"),
        ("q=%E2%99%A5", ""),
        ("q=!!!", ""),
        ("q=dj+cher", "cherry"),
        ("keys=7", "Éclair"),
        ("keys=4,5", "apple banana cherry Éclair 宙の旋律"),
        ("keys=4&keys=5", "apple banana cherry Éclair 宙の旋律"),
        ("keys=6", ""),
        ("source=betaPack", "cherry"),
        ("source=alphaSet", "banana Éclair 宙の旋律"),
        ("set=2", "Éclair"),
        ("set=9", ""),
        ("pack=9", "cherry"),
        ("pack=2", ""),
        ("set=2&q=eclair", "Éclair"),
        ("creator=ALI", "banana Éclair"),
        ("creator=_100%25", "Éclair"),
        ("creator=%25", "Éclair"),
        ("creator=lice,%20b", "Éclair"),
        ("bpmMin=200", "Éclair"),
        ("bpmMax=100", "banana"),
        ("bpmMin=160&bpmMax=180", "cherry Éclair"),
        ("bpmMin=200.001", ""),
        ("lengthMin=120", "apple"),
        ("lengthMax=59.999", "cherry"),
        ("lengthMin=60&lengthMax=60", "banana Éclair 宙の旋律"),
        ("densityMin=8", "apple"),
        ("densityMin=8.001", ""),
        ("query=ban", "banana"),
        ("query=keys%3D7+bpm%3E199.999", "Éclair"),
        ("query=bpm%3E200", ""),
        ("query=keys:4+length%3C1:00", "cherry"),
        ("query=-creator:alice+-tag:STREAM", "apple cherry"),
        ("query=-creator:ali&source=alphaSet&query=", "宙の旋律"),
        ("query=%22keys:4%22", ""),
        ("query=mapper:ali+7k", "Éclair"),
        ("query=title:eclair", "Éclair"),
        ("query=song:ban+-title:cherry", "banana"),
        ("query=title:senritsu", "宙の旋律"),
        ("query=tag:stream+artist:zoe", "宙の旋律"),
        ("query=tag:stream+-artist:zoe", ""),
    ] {
        let titles = index.titles(&format!("sort=title&{query}")).await.join(" ");
        assert_eq!(titles, expected, "{query}");
    }
}

/// `updated`, `density`, `bpm` and `length` are descending by default, `title` and `artist` ascending and
/// folded. `order` overrides. Ties are sorted by id in both directions.
#[tokio::test]
async fn sorts_have_their_default_directions() {
    const TITLES: [&str; 5] = ["apple", "banana", "cherry", "Éclair", "宙の旋律"];
    const ARTISTS: [&str; 3] = ["Artist", "DJ", "Zoë"];
    let index = shared_catalogue().await;
    let position = |texts: &[&str], text: &serde_json::Value| {
        let position = texts.iter().position(|other| text == other).unwrap();
        u32::try_from(position).ok().map(f64::from)
    };
    for (sort, default) in [
        ("updated", "desc"),
        ("density", "desc"),
        ("bpm", "desc"),
        ("length", "desc"),
        ("title", "asc"),
        ("artist", "asc"),
    ] {
        let items = async |order: &str| {
            let list = index.list(&format!("include=updated&sort={sort}{order}")).await;
            list["items"].as_array().unwrap().clone()
        };
        let value = |item: &serde_json::Value| match sort {
            "updated" => item["updatedAtMs"].as_f64(),
            "density" => item["densityMax"].as_f64(),
            "bpm" => item["bpmMax"].as_f64(),
            "length" => item["lengthMaxMs"].as_f64(),
            "title" => position(&TITLES, &item["title"]),
            _ => position(&ARTISTS, &item["artist"]),
        };
        for order in ["asc", "desc"] {
            let listed = items(&format!("&order={order}")).await;
            assert_eq!(listed.len(), 5);
            let mut sorted = listed.clone();
            sorted.sort_by(|one, other| {
                let by_value = value(one).unwrap().total_cmp(&value(other).unwrap());
                let by_value = if order == "asc" { by_value } else { by_value.reverse() };
                by_value.then(one["id"].as_str().cmp(&other["id"].as_str()))
            });
            assert_eq!(listed, sorted, "{sort} {order}");
            assert!(order != default || items("").await == listed, "{sort} is {default} by default");
        }
    }
}

/// The page and the page size that were used, and the titles. `total` is that of all pages.
#[tokio::test]
async fn pages_are_clamped_and_empty_past_the_last() {
    let index = shared_catalogue().await;
    let all = "apple banana cherry Éclair 宙の旋律";
    for (query, page, per_page, titles) in [
        ("page=0", 1, 30, all),
        ("page=-7&perPage=500", 1, 60, all),
        ("perPage=0", 1, 1, "apple"),
        ("page=2&perPage=3", 2, 3, "Éclair 宙の旋律"),
        ("page=3&perPage=3", 3, 3, ""),
        ("page=99999999999999999999999", i32::MAX, 30, ""),
    ] {
        let list = index.list(&format!("sort=title&{query}")).await;
        let used = [&list["page"], &list["perPage"], &list["total"]].map(|value| value.as_i64().unwrap());
        assert_eq!(used, [page.into(), per_page, 5], "{query}");
        assert_eq!(strings(&list["items"], "title").join(" "), titles, "{query}");
    }
}

/// An effect of a moment counts for `bpm` only.
#[tokio::test]
async fn main_bpm_is_that_of_most_of_a_chart() {
    let library = catalogue();
    let effect = ChartSpec { bpm: 99.0, effect_bpm: Some(900.0), ..ChartSpec::numbered(6) };
    library.osu("alpha/4 effect/a.osu", ChartSpec { title: "effect".into(), ..effect });
    let index = Index::new(library).await;
    assert_eq!(index.titles("sort=bpm").await[..2], ["effect", "Éclair"]);
    let titles = index.titles("sort=mainBpm").await;
    assert_eq!(
        (&titles[..2], &titles[4..]),
        (&["Éclair".into(), "cherry".into()][..], &["banana".into(), "effect".into()][..])
    );
    assert_eq!(index.titles("sort=mainBpm&order=asc&keys=4").await[..2], ["effect", "banana"]);
    assert_eq!(walk(&index, "sort=mainBpm", 4, || ()).await, titles);
    for (query, expected) in [
        ("mainBpmMax=99", &["effect"][..]),
        ("mainBpmMin=99&mainBpmMax=99.5", &["effect"]),
        ("mainBpmMin=500", &[]),
        ("bpmMin=500", &["effect"]),
        ("query=bpm%3C99.001+keys%3D4", &["effect"]),
        ("mainBpmMax=99&keys=7", &[]),
    ] {
        assert_eq!(index.titles(query).await, expected, "{query}");
    }
}

/// The default is newest first: by the time at which the chartset last changed in the index.
#[tokio::test]
async fn most_recently_changed_chartset_comes_first() {
    let index = Index::new(catalogue()).await;
    index.library.osu("alpha/1 one/b.osu", ChartSpec { title: "banana".into(), ..ChartSpec::numbered(77) });
    assert!(index.ingest().contains("0 chartsets added, 4 unchanged, 1 updated"));
    assert_eq!(index.titles("").await[0], "banana");
    assert_eq!(index.titles("order=asc").await[4], "banana");
    let before = index.titles("").await;
    assert!(index.ingest().contains("0 chartsets added, 5 unchanged, 0 updated"));
    assert_eq!(index.titles("").await, before, "an ingest without changes keeps the order");
}

/// The titles of all pages by cursor (docs/api.md, "Chartset list"), with a change after the first page.
async fn walk(index: &Index, query: &str, per_page: u32, change: impl FnOnce()) -> Vec<String> {
    let (mut titles, mut after, mut change) = (Vec::new(), "start".to_owned(), Some(change));
    for page in 1.. {
        let list = index.list(&format!("{query}&perPage={per_page}&after={after}")).await;
        assert_eq!((&list["page"], &list["perPage"]), (&page.into(), &per_page.into()));
        titles.extend(strings(&list["items"], "title"));
        let Some(next) = list["nextAfter"].as_str() else { break };
        next.clone_into(&mut after);
        if let Some(change) = change.take() {
            change();
        }
    }
    titles
}

/// Sets that are added, and one that is removed after it was read.
#[tokio::test]
async fn cursor_neither_repeats_nor_skips_while_the_index_changes() {
    let index = Index::new(catalogue()).await;
    let all = ["apple", "banana", "cherry", "Éclair", "宙の旋律"];
    assert_eq!(walk(&index, "sort=title", 3, || ()).await, all);
    let banana = index.id_of("banana").await;
    let change = || {
        for (number, title) in [(6, "aardvark"), (7, "blueberry"), (8, "zebra")] {
            let spec = ChartSpec { title: title.into(), ..ChartSpec::numbered(number) };
            index.library.osu(&format!("alpha/{number} new/a.osu"), spec);
        }
        assert!(index.ingest().contains("3 chartsets added"));
        index.indexer(&["remove", "chartset", &banana]);
    };
    let expected = ["apple", "banana", "blueberry", "cherry", "Éclair", "zebra", "宙の旋律"];
    assert_eq!(walk(&index, "sort=title", 2, change).await, expected);
    let mut by_relevance = walk(&index, "q=a&sort=relevance", 2, || ()).await;
    assert_eq!(by_relevance[0], "aardvark", "{by_relevance:?}");
    by_relevance.sort();
    let mut expected = index.titles("q=a&perPage=60").await;
    expected.sort();
    assert_eq!(by_relevance, expected);
}

#[tokio::test]
async fn lists_without_after_have_no_cursor() {
    let index = shared_catalogue().await;
    for query in ["", "perPage=1", "after="] {
        assert_eq!(fields(&index.list(query).await), ["items", "page", "perPage", "total"], "{query}");
    }
    let first = index.list("perPage=1&after=start").await;
    assert_eq!(fields(&first), ["items", "nextAfter", "page", "perPage", "total"]);
    assert_eq!(
        fields(&index.list("after=start").await),
        ["items", "page", "perPage", "total"],
        "the last page"
    );
}

#[tokio::test]
async fn invalid_parameter_is_named() {
    let index = Index::empty().await;
    let long = format!("q={}", "x".repeat(201));
    for (query, parameter) in [
        ("after=x", "after"),
        ("after=start&page=1", "after"),
        ("after=start&after=start", "after"),
        ("keys=3", "keys"),
        ("keys=4,8", "keys"),
        ("source=AlphaSet", "source"),
        ("sort=newest", "sort"),
        ("order=up", "order"),
        ("bpmMin=200&bpmMax=100", "bpmMin"),
        ("lengthMin=2&lengthMax=1", "lengthMin"),
        ("densityMin=dense", "densityMin"),
        ("page=1.5", "page"),
        ("perPage=ten", "perPage"),
        ("q=%00", "q"),
        ("q=a&query=a", "q"),
        ("query=keys:4&keys=4", "keys"),
        (&long, "q"),
    ] {
        let response = index.get(&format!("/api/chartsets?{query}")).await;
        assert_eq!(response.status, 400, "{query}");
        assert_eq!(response.json()["parameter"], parameter, "{query}");
        assert_eq!(response.header("cache-control"), "no-store");
    }
}
