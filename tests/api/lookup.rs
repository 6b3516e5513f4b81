//! `GET /api/charts/{hash}`.

use super::*;

/// The Chart lookup answer, the Source and the Chart object of the contract, field by field.
#[tokio::test]
async fn a_known_chart_is_answered_with_its_sources_and_numbers() {
    let library = Library::new();
    let chart = library.osu(
        "alpha/12 one/a.osu",
        ChartSpec { keys: 7, set_id: 12, beatmap_id: 34, bpm: 174.5, ..ChartSpec::default() },
    );
    let index = Index::over(library).await;
    let answer = index.get(&format!("/api/charts/{}", chart.note_hash())).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    let answer = answer.json();
    assert_eq!(fields(&answer), ["chart", "chartHash", "sources", "status", "ttlMs"]);
    assert_eq!(answer["chartHash"], chart.note_hash());
    assert_eq!((&answer["status"], &answer["ttlMs"]), (&"known".into(), &300_000.into()));

    let sources = answer["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert_eq!(fields(&sources[0]), ["checkedAtMs", "confidence", "kind", "ref"]);
    assert_eq!((&sources[0]["kind"], &sources[0]["ref"]), (&"alphaSet".into(), &"12".into()));
    assert_eq!(sources[0]["confidence"], "exact");
    assert!(sources[0]["checkedAtMs"].as_i64().unwrap() > 1_700_000_000_000, "Unix epoch milliseconds");

    let expected = [
        "artist",
        "bpmMain",
        "bpmMax",
        "bpmMin",
        "creator",
        "densityAvg",
        "densityPeak",
        "difficulty",
        "hash",
        "keys",
        "lengthMs",
        "lns",
        "noteHashVersion",
        "notes",
        "roxBytes",
        "title",
    ];
    let object = &answer["chart"];
    assert_eq!(fields(object), expected);
    assert_eq!(object["hash"], chart.note_hash());
    // Three notes in 1,500 milliseconds; the first two starts lie within one second, the last at its very end.
    for (field, value) in [
        ("keys", 7.0),
        ("bpmMin", 174.5),
        ("bpmMax", 174.5),
        ("bpmMain", 174.5),
        ("lengthMs", 1500.0),
        ("notes", 3.0),
        ("lns", 1.0),
        ("densityAvg", 2.0),
        ("densityPeak", 2.0),
    ] {
        assert_eq!(object[field].as_f64(), Some(value), "{field}");
    }
    assert_eq!((&object["title"], &object["difficulty"]), (&"Title".into(), &"Hard".into()));
}

/// "Unknown, or removed: `{"chartHash":…,"status":"unknown","ttlMs":…}`; `sources` and `chart` omitted."
#[tokio::test]
async fn unknown_hash_is_not_an_error() {
    let index = Index::over(Library::new()).await;
    let hash = "0".repeat(64);
    let answer = index.get(&format!("/api/charts/{hash}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), serde_json::json!({"chartHash": hash, "status": "unknown", "ttlMs": 300_000}));
    assert_eq!(answer.header("cache-control"), "public, max-age=300");
    assert!(answer.header("etag").starts_with('"'), "a strong tag on both statuses");
}

/// "Upper-case, short, long or non-hex hash: 400."
#[tokio::test]
async fn a_malformed_hash_is_refused() {
    let index = Index::over(Library::new()).await;
    let hash = "ab".repeat(32);
    for bad in
        [&hash.to_uppercase(), &hash[1..], &format!("{hash}0"), &hash.replace('a', "g"), "%00", "%FF", "x"]
    {
        for suffix in ["", "/rox"] {
            let answer = index.get(&format!("/api/charts/{bad}{suffix}")).await;
            assert_eq!(answer.status, 400, "{bad}{suffix}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
}

/// "A chart found in several chartsets lists them all"; "exact before declared, then by kind and ref".
#[tokio::test]
async fn sources_are_exact_before_declared_then_by_kind_and_ref() {
    let library = Library::new();
    let chart = library.osu("alpha/30 three/a.osu", ChartSpec { set_id: 30, ..ChartSpec::default() });
    library.osu("alpha/20 two/a.osu", ChartSpec { set_id: 11, ..chart.clone() });
    library.osu("alpha/no id/a.osu", ChartSpec { set_id: 10, ..chart.clone() });
    library.osu("beta/15 pack/song/a.osu", ChartSpec { set_id: 20, ..chart.clone() });
    let index = Index::over(library).await;
    let answer = index.get(&format!("/api/charts/{}", chart.note_hash())).await.json();
    let sources = answer["sources"].as_array().unwrap();
    let told: Vec<_> = sources
        .iter()
        .map(|source| ["confidence", "kind", "ref"].map(|f| source[f].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ["exact", "alphaSet", "20"],
            ["exact", "alphaSet", "30"],
            ["exact", "betaPack", "15"],
            ["declared", "alphaSet", "10"],
            ["declared", "alphaSet", "11"],
        ]
    );
}

/// "`checkedAtMs`: when the indexer last saw it"; the rest of the answer stays as it was.
#[tokio::test]
async fn ingesting_again_moves_only_the_time_of_the_check() {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let index = Index::over(library).await;
    let path = format!("/api/charts/{}", chart.note_hash());
    let mut before = index.get(&path).await.json();
    assert!(index.ingest().contains("0 chartsets added, 1 unchanged, 0 updated"));
    // The time of a check is no change that replicas are told of: one that has kept nothing shows it.
    let fresh = Service::start(index.database.url());
    let mut after = fresh.client().get(&path).await.json();
    let checked = |answer: &mut serde_json::Value| answer["sources"][0]["checkedAtMs"].take().as_i64();
    assert!(checked(&mut before) < checked(&mut after));
    assert_eq!(before, after);
}
