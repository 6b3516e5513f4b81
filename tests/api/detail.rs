//! `GET /api/chartsets/{id}`.

use super::*;

fn pack() -> Library {
    let library = Library::new();
    let text = |difficulty: &str, creator: &str, tags: &str| ChartSpec {
        difficulty: difficulty.into(),
        creator: creator.into(),
        tags: tags.into(),
        title: difficulty.into(),
        ..ChartSpec::default()
    };
    let dense = (0..40).map(|n| (n * 50, 0, None)).collect();
    library.osu("alpha/12 set/a.osu", ChartSpec { keys: 7, beatmap_id: 71, ..text("seven", "Ann", "c") });
    library.osu("alpha/12 set/b.osu", ChartSpec { notes: dense, set_id: 12, ..text("dense", "Bo", "a b") });
    library
        .osu("alpha/12 set/c.osu", ChartSpec { beatmap_id: 41, set_id: 99, ..text("sparse", "Ann", "b a") });
    library
}

/// The Chartset detail of the contract: all list-item fields, tags, sources, charts "ordered by keys, then
/// `densityAvg`, then hash", and what follows from that order.
#[tokio::test]
async fn a_detail_shows_the_charts_in_their_order() {
    let index = Index::over(pack()).await;
    let item = index.list("").await["items"][0].clone();
    let answer = index.get(&format!("/api/chartsets/{}", item["id"].as_str().unwrap())).await;
    assert_eq!(answer.header("cache-control"), "public, max-age=30");
    assert!(answer.header("etag").starts_with('"'));
    let detail = answer.json();
    for field in fields(&item) {
        assert_eq!(detail[field], item[field], "{field}");
    }
    let more: Vec<_> = fields(&detail).into_iter().filter(|field| !fields(&item).contains(field)).collect();
    assert_eq!(more, ["charts", "sources", "tags"]);
    assert_eq!(strings(&detail["charts"], "difficulty"), ["sparse", "dense", "seven"]);
    assert_eq!(detail["tags"], serde_json::json!(["b", "a", "c"]));
    assert_eq!((&detail["title"], &detail["creator"]), (&"sparse".into(), &"Ann, Bo".into()));
    let beatmaps: Vec<_> =
        detail["charts"].as_array().unwrap().iter().map(|c| c.get("alphaBeatmapId").cloned()).collect();
    assert_eq!(beatmaps, [Some(41.into()), None, Some(71.into())]);
    let sources = detail["sources"].as_array().unwrap();
    let told: Vec<_> =
        sources.iter().map(|s| (s["confidence"].as_str().unwrap(), s["ref"].as_str().unwrap())).collect();
    assert_eq!(told, [("exact", "12"), ("declared", "99")]);
}

/// "each entry holds: a `chart` (Chart object), `difficulty`": the Chart object is the one of the lookup.
#[tokio::test]
async fn a_chart_of_a_detail_is_the_chart_of_the_lookup() {
    let index = Index::over(pack()).await;
    let id = index.id_of("sparse").await;
    let detail = index.get(&format!("/api/chartsets/{id}")).await.json();
    for entry in detail["charts"].as_array().unwrap() {
        let hash = entry["chart"]["hash"].as_str().unwrap();
        let lookup = index.get(&format!("/api/charts/{hash}")).await.json();
        assert_eq!(lookup["chart"], entry["chart"]);
    }
}

/// "Unknown or malformed id: 404."
#[tokio::test]
async fn an_unknown_or_malformed_id_is_not_found() {
    let index = Index::over(Library::new()).await;
    for id in ["0000000000000000", "0", "00000000000000000", "GGGGGGGGGGGGGGGG", "%FF", "%00", "a%2Fb"] {
        for path in ["/api/chartsets", "/go/chartset"] {
            let answer = index.get(&format!("{path}/{id}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("content-type")),
                (404, "application/problem+json"),
                "{id}"
            );
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
}

/// "A song folder holding the same notes twice (an `.sm` beside its `.ssc`) lists the chart once."
#[tokio::test]
async fn the_same_notes_twice_in_a_folder_are_listed_once() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec::default());
    library.osu("alpha/12 set/b.osu", ChartSpec { difficulty: "again".into(), ..ChartSpec::default() });
    let index = Index::over(library).await;
    let item = index.list("").await["items"][0].clone();
    assert_eq!(item["chartCount"], 1);
}

/// A set or chart that was taken out is shown nowhere, and its charts stay known where another set holds them.
#[tokio::test]
async fn a_removed_set_is_shown_nowhere() {
    let library = pack();
    library.osu("alpha/13 other/a.osu", ChartSpec { title: "other".into(), ..ChartSpec::default() });
    let index = Index::over(library).await;
    let id = index.id_of("sparse").await;
    index.indexer(&["remove", "chartset", &id]);
    index.ingest();
    within(IN_FORCE, async || (index.titles("").await == ["other"]).then_some(())).await;
    index.answers(&format!("/api/chartsets/{id}"), 404).await;
    index.answers(&format!("/go/chartset/{id}"), 404).await;
    let shared = index.get(&format!("/api/charts/{}", ChartSpec::default().note_hash())).await.json();
    assert_eq!(strings(&shared["sources"], "ref"), ["13"]);
    index.indexer(&["restore", "chartset", &id]);
    index.answers(&format!("/api/chartsets/{id}"), 200).await;
}
