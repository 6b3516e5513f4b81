//! Charts with the same order of rows, and charts by what games know them by (docs/api.md, "Variants" and
//! "Batch lookup").

use std::process::Command;

use serde_json::{Value, json};

use super::*;

/// That of [`at_rate`], whatever the rate: a vector of docs/formats/variant.md.
const VARIANT: &str = "6aae14837dba1eb27b1a4e3f890d83f64f964567da532ba0e8509411e69799fd";

/// A chart of 64 rows, converted to a rate as converters do.
pub(crate) fn at_rate(rate_percent: i64, difficulty: &str) -> ChartSpec {
    let note = |i: i64| {
        let start = (12_500 * i + rate_percent / 2) / rate_percent;
        (start, u8::try_from((i * i + i / 3 + i / 8) % 5).unwrap(), None)
    };
    let notes = (0..64).map(note).collect();
    ChartSpec { keys: 5, notes, difficulty: difficulty.into(), ..ChartSpec::default() }
}

/// An index with a chart, a conversion to another rate, and one with other times.
struct Variants {
    index: Index,
    original: String,
    faster: String,
    uneven: String,
}

fn uneven() -> ChartSpec {
    let mut uneven = at_rate(100, "Uneven");
    uneven.notes.iter_mut().skip(32).for_each(|note| note.0 += 40);
    uneven
}

fn library() -> Library {
    let library = Library::new();
    library.osu("alpha/12 one/a.osu", ChartSpec { beatmap_id: 77, ..at_rate(100, "Hard") });
    library.osu("beta/3 pack/fast/b.osu", at_rate(110, "Hard 1.1x"));
    library.osu("alpha/13 two/c.osu", uneven());
    library
}

impl Variants {
    async fn new() -> Self {
        Self::of(Index::new(library()).await)
    }

    /// Those that tests share, which only read them.
    async fn shared() -> Self {
        static VARIANTS: Shared<Instance> = Shared::empty();
        Self::of(Index::shared(&VARIANTS, library).await)
    }

    fn of(index: Index) -> Self {
        let charts = [at_rate(100, ""), at_rate(110, ""), uneven()];
        let [original, faster, uneven] = charts.map(|chart| chart.note_hash());
        Self { index, original, faster, uneven }
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.index.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        response.json()
    }

    async fn batch(&self, query: &str, body: &Value) -> Response {
        self.index.client.look_up(query, body).await
    }

    fn md5(&self, file: &str) -> String {
        let output = Command::new("md5sum").arg(self.index.library.root().join(file)).output().unwrap();
        String::from_utf8(output.stdout).unwrap()[..32].to_owned()
    }
}

fn of(variants: &Value, hash: &str) -> Value {
    let mut items = variants.as_array().unwrap().iter();
    items.find(|item| item["hash"] == hash).unwrap_or_else(|| panic!("{hash} in {variants}")).clone()
}

#[tokio::test]
async fn lookup_lists_conversions_with_their_rate() {
    let variants = Variants::shared().await;
    let path = format!("/api/charts/{}", variants.original);
    let plain = variants.json(&path).await;
    let mut extended = variants.json(&format!("{path}?include=variants")).await;
    assert_eq!(
        (&extended["chart"]["variant"], &extended["chart"]["variantVersion"]),
        (&json!(VARIANT), &json!(1))
    );
    assert_eq!(extended["variantsTotal"], 2);
    let faster = of(&extended["variants"], &variants.faster);
    assert_eq!(fields(&faster), ["difficulty", "hash", "lengthMs", "rate", "sources", "timing", "title"]);
    assert_eq!((&faster["rate"], &faster["timing"]), (&json!(1.1), &json!("uniform")));
    assert_eq!(strings(&faster["sources"], "ref"), ["3"]);
    let uneven = of(&extended["variants"], &variants.uneven);
    assert_eq!((&uneven["timing"], &uneven["difficulty"]), (&json!("differs"), &json!("Uneven")));

    for field in ["variants", "variantsTotal"] {
        extended.as_object_mut().unwrap().remove(field).unwrap();
    }
    for field in ["variant", "variantVersion"] {
        extended["chart"].as_object_mut().unwrap().remove(field).unwrap();
    }
    assert_eq!(extended, plain, "nothing else differs");
}

#[tokio::test]
async fn unknown_hash_is_found_by_its_variant() {
    let variants = Variants::shared().await;
    let slower = at_rate(80, "Mine").note_hash();
    let path = format!("/api/charts/{slower}?include=variants");
    let without = variants.json(&path).await;
    assert_eq!((&without["status"], &without["variantsTotal"]), (&json!("unknown"), &json!(0)));
    let found = variants.json(&format!("{path}&variant={VARIANT}")).await;
    assert_eq!((&found["status"], &found["chartHash"]), (&json!("unknown"), &json!(slower)));
    assert_eq!(found["variants"].as_array().unwrap().len(), 3);
    let original = of(&found["variants"], &variants.original);
    assert!(original.get("rate").is_none() && original.get("timing").is_none(), "{original}");

    let listed = variants.json(&format!("/api/variants/{VARIANT}")).await;
    assert_eq!(fields(&listed), ["items", "total", "ttlMs", "variant", "variantVersion"]);
    assert_eq!((&listed["items"], &listed["total"]), (&found["variants"], &json!(3)));
    let none = variants.json(&format!("/api/variants/{}", "0".repeat(64))).await;
    assert_eq!((&none["items"], &none["total"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn detail_has_the_variants_of_its_charts() {
    let variants = Variants::shared().await;
    let id = &variants.json("/api/chartsets?set=12").await["items"][0]["id"];
    let path = format!("/api/chartsets/{}", id.as_str().unwrap());
    let plain = variants.json(&path).await;
    let mut extended = variants.json(&format!("{path}?include=variants")).await;
    let chart = extended["charts"][0]["chart"].as_object_mut().unwrap();
    let added = ["variant", "variantVersion"].map(|field| chart.remove(field).unwrap());
    assert_eq!(added, [json!(VARIANT), json!(1)]);
    assert_eq!(extended, plain, "nothing else differs");
}

/// Items of all kinds, each with the body of a single lookup.
#[tokio::test]
async fn batch_finds_charts_by_what_games_know() {
    let variants = Variants::shared().await;
    let (md5, unknown) = (variants.md5("beta/3 pack/fast/b.osu"), "0".repeat(32));
    let charts = json!([
        {"alphaBeatmapId": 77}, {"md5": md5}, {"md5": unknown}, {"alphaBeatmapId": 78}, {"hash": variants.uneven}
    ]);
    let body = json!({"hashes": [variants.uneven], "charts": charts});
    let items = variants.batch("", &body).await.json()["items"].clone();
    let mut original = variants.json(&format!("/api/charts/{}", variants.original)).await;
    original["alphaBeatmapId"] = json!(77);
    let mut faster = variants.json(&format!("/api/charts/{}", variants.faster)).await;
    faster["md5"] = json!(md5);
    let uneven = variants.json(&format!("/api/charts/{}", variants.uneven)).await;
    let none = json!({"md5": unknown, "status": "unknown", "ttlMs": 300_000});
    let no_id = json!({"alphaBeatmapId": 78, "status": "unknown", "ttlMs": 300_000});
    assert_eq!(items, json!([uneven, original, faster, none, no_id, uneven]));

    let mine = at_rate(80, "Mine").note_hash();
    let charts =
        json!([{"hash": mine, "variant": VARIANT}, {"md5": unknown, "variant": VARIANT}, {"md5": unknown}]);
    let items = variants.batch("?include=variants", &json!({"charts": charts})).await.json()["items"].clone();
    let single = variants.json(&format!("/api/charts/{mine}?include=variants&variant={VARIANT}")).await;
    assert_eq!(items[0], single);
    assert_eq!((&items[1]["md5"], &items[1]["variants"]), (&json!(unknown), &single["variants"]));
    assert_eq!(items[2], none);
}

/// The old file of a chart whose file changed.
#[tokio::test]
async fn chart_stays_known_by_an_earlier_file() {
    let variants = Variants::new().await;
    let md5 = variants.md5("alpha/12 one/a.osu");
    let renamed = ChartSpec { tags: "new".into(), ..at_rate(100, "Harder") };
    variants.index.library.osu("alpha/12 one/a.osu", renamed);
    variants.index.ingest();
    let charts = json!({"charts": [{"md5": md5}, {"md5": variants.md5("alpha/12 one/a.osu")}]});
    let items = variants.batch("", &charts).await.json()["items"].clone();
    assert_eq!(strings(&items, "chartHash"), [variants.original.as_str(); 2]);
}

#[tokio::test]
async fn malformed_parameters_are_400() {
    let variants = Variants::shared().await;
    let hash = &variants.original;
    for (path, parameter) in [
        (format!("/api/charts/{hash}?include=all"), "include"),
        (format!("/api/charts/{hash}?include=variants&variant=x"), "variant"),
        ("/api/variants/x".to_owned(), "variant"),
        (format!("/api/variants/{}", VARIANT.to_uppercase()), "variant"),
        ("/api/chartsets/00ff00ff00ff00ff?include=all".to_owned(), "include"),
        ("/api/chartsets?set=x".to_owned(), "set"),
    ] {
        let response = variants.index.get(&path).await;
        assert_eq!(
            (response.status.as_u16(), &response.json()["parameter"]),
            (400, &json!(parameter)),
            "{path}"
        );
    }
    for (query, body, parameter) in [
        ("", json!({"charts": [{"md5": "x"}]}), "charts[0].md5"),
        ("", json!({"charts": [{}]}), "charts[0].hash"),
        ("", json!({}), "hashes"),
        ("?include=all", json!({"hashes": [hash]}), "include"),
        ("?include=variants", json!({"hashes": vec![hash; 101]}), "hashes"),
    ] {
        let response = variants.batch(query, &body).await;
        assert_eq!(
            (response.status.as_u16(), &response.json()["parameter"]),
            (400, &json!(parameter)),
            "{body}"
        );
    }
}
