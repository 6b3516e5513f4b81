//! `GET /api/charts/{hash}` (docs/api.md, "Chart lookup").

use super::*;

/// The fields of a lookup, of its sources and of its chart.
#[tokio::test]
async fn known_chart_has_its_sources_and_numbers() {
    let library = Library::new();
    let chart = library.osu(
        "alpha/12 one/a.osu",
        ChartSpec { keys: 7, set_id: 12, beatmap_id: 34, bpm: 174.5, ..ChartSpec::default() },
    );
    let index = Index::new(library).await;
    let response = index.get(&format!("/api/charts/{}", chart.note_hash())).await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/json"));
    let response = response.json();
    assert_eq!(fields(&response), ["chart", "chartHash", "sources", "status", "ttlMs"]);
    assert_eq!(response["chartHash"], chart.note_hash());
    assert_eq!((&response["status"], &response["ttlMs"]), (&"known".into(), &300_000.into()));

    let sources = response["sources"].as_array().unwrap();
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
    let object = &response["chart"];
    assert_eq!(fields(object), expected);
    assert_eq!(object["hash"], chart.note_hash());
    // Three notes in 1,500 ms. Two start within one second; the third starts exactly at its end.
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

/// An unknown hash is 200 with the status `unknown`, without `sources` and `chart`.
#[tokio::test]
async fn unknown_hash_is_not_an_error() {
    let index = Index::empty().await;
    let hash = "0".repeat(64);
    let response = index.get(&format!("/api/charts/{hash}")).await;
    assert_eq!(response.status, 200);
    assert_eq!(
        response.json(),
        serde_json::json!({"chartHash": hash, "status": "unknown", "ttlMs": 300_000})
    );
    assert_eq!(response.header("cache-control"), "public, max-age=300");
    assert!(response.header("etag").starts_with('"'), "a strong tag on both statuses");
}

/// A hash that is not 64 lower-case hexadecimal characters is 400.
#[tokio::test]
async fn malformed_hash_is_400() {
    let index = Index::empty().await;
    let hash = "ab".repeat(32);
    for bad in
        [&hash.to_uppercase(), &hash[1..], &format!("{hash}0"), &hash.replace('a', "g"), "%00", "%FF", "x"]
    {
        for suffix in ["", "/rox", "/preview"] {
            let response = index.get(&format!("/api/charts/{bad}{suffix}")).await;
            assert_eq!(response.status, 400, "{bad}{suffix}");
            assert_eq!(response.header("content-type"), "application/problem+json");
            assert_eq!(response.json()["type"], "/problems/malformed-hash");
            assert_eq!(response.header("cache-control"), "no-store");
        }
    }
}
