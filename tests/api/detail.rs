//! `GET /api/chartsets/{id}` (docs/api.md, "Chartset detail").

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

async fn shared_pack() -> Index {
    static PACK: Shared<Instance> = Shared::empty();
    Index::shared(&PACK, pack).await
}

/// A detail has the fields of a list item, tags, sources, and charts ordered by keys, then `densityAvg`, then
/// hash. Title, creator and tags follow from that order.
#[tokio::test]
async fn detail_lists_charts_in_order() {
    let index = shared_pack().await;
    let item = index.list("").await["items"][0].clone();
    let response = index.get(&format!("/api/chartsets/{}", item["id"].as_str().unwrap())).await;
    assert_eq!(response.header("cache-control"), "public, max-age=30");
    assert!(response.header("etag").starts_with('"'));
    let detail = response.json();
    for field in fields(&item) {
        assert_eq!(detail[field], item[field], "{field}");
    }
    let additional: Vec<_> =
        fields(&detail).into_iter().filter(|field| !fields(&item).contains(field)).collect();
    assert_eq!(additional, ["charts", "sources", "tags"]);
    assert_eq!(strings(&detail["charts"], "difficulty"), ["sparse", "dense", "seven"]);
    assert_eq!(detail["tags"], serde_json::json!(["b", "a", "c"]));
    assert_eq!((&detail["title"], &detail["creator"]), (&"sparse".into(), &"Ann, Bo".into()));
    let beatmaps: Vec<_> =
        detail["charts"].as_array().unwrap().iter().map(|c| c.get("alphaBeatmapId").cloned()).collect();
    assert_eq!(beatmaps, [Some(41.into()), None, Some(71.into())]);
    let sources = detail["sources"].as_array().unwrap();
    let listed: Vec<_> =
        sources.iter().map(|s| (s["confidence"].as_str().unwrap(), s["ref"].as_str().unwrap())).collect();
    assert_eq!(listed, [("exact", "12"), ("declared", "99")]);
}

/// The `chart` of each entry is the object of the lookup.
#[tokio::test]
async fn detail_and_lookup_have_the_same_chart_object() {
    let index = shared_pack().await;
    let id = index.id_of("sparse").await;
    let detail = index.get(&format!("/api/chartsets/{id}")).await.json();
    for entry in detail["charts"].as_array().unwrap() {
        let hash = entry["chart"]["hash"].as_str().unwrap();
        let lookup = index.get(&format!("/api/charts/{hash}")).await.json();
        assert_eq!(lookup["chart"], entry["chart"]);
    }
}

/// An unknown and a malformed id are both 404.
#[tokio::test]
async fn unknown_or_malformed_id_is_404() {
    let index = Index::empty().await;
    for id in ["0000000000000000", "0", "00000000000000000", "GGGGGGGGGGGGGGGG", "%FF", "%00", "a%2Fb"] {
        for path in ["/api/chartsets", "/go/chartset"] {
            let response = index.get(&format!("{path}/{id}")).await;
            assert_eq!(
                (response.status.as_u16(), response.header("content-type")),
                (404, "application/problem+json"),
                "{id}"
            );
            assert_eq!(response.header("cache-control"), "no-store");
        }
    }
}
