//! Ratings and patterns of charts (docs/api.md, "Extension fields").

use serde_json::{Value, json};

use super::*;

/// A rating, and patterns of which two classes occur.
const STORED: &str = "UPDATE charts SET rating = 527, patterns = '\\x0a00000000 2b000000 0c1e 026c 038e', analysis_version = 1";

/// An index with a chart whose rating and patterns are known.
struct Analysed {
    index: Index,
    hash: String,
    id: String,
}

impl Analysed {
    async fn new() -> Self {
        let library = Library::new();
        let hash = library.osu("alpha/12 one/a.osu", ChartSpec::numbered(1)).note_hash();
        let index = Index::new(library).await;
        index.database.psql(STORED);
        let id = index.database.psql("SELECT id FROM chartsets");
        Self { index, hash, id }
    }

    /// The Chart object of a lookup, of an item of a batch lookup, and of a detail, with their other fields.
    async fn charts(&self, query: &str) -> [(Value, Value); 3] {
        let lookup = self.index.get(&format!("/api/charts/{}{query}", self.hash)).await.json();
        let detail = self.index.get(&format!("/api/chartsets/{}{query}", self.id)).await.json();
        let batch = self.index.client.look_up(query, &json!({"hashes": [self.hash]})).await.json();
        let take = |mut body: Value, pointer: &str| (body.pointer_mut(pointer).unwrap().take(), body);
        [take(lookup, "/chart"), take(batch, "/items/0/chart"), take(detail, "/charts/0/chart")]
    }
}

#[tokio::test]
async fn fields_are_served_if_requested() {
    let analysed = Analysed::new().await;
    let rating = json!({"algorithm": "alphaStars", "version": 1, "value": 5.27});
    let patterns = json!({
        "version": 1, "rows": {"jack": 10, "stream": 43}, "lnNotes": 12, "lnTime": 30,
        "rowsPerSecond": {"median": 6.2, "p90": 9.1},
    });
    let plain = analysed.charts("").await;
    assert!(plain.iter().all(|(chart, _)| chart.get("rating").is_none() && chart.get("patterns").is_none()));
    let both = [("rating", &rating), ("patterns", &patterns)];
    for (include, expected) in [
        ("rating", &both[..1]),
        ("patterns", &both[1..]),
        ("patterns,rating", &both),
        ("rating,patterns", &both),
    ] {
        let mut charts = analysed.charts(&format!("?include={include}")).await;
        for (chart, _) in &mut charts {
            for (field, value) in expected {
                assert_eq!(chart.as_object_mut().unwrap().remove(*field).as_ref(), Some(*value), "{include}");
            }
        }
        assert_eq!(charts, plain, "{include}: nothing else differs");
    }
    for (chart, _) in analysed.charts("?include=variants,rating").await {
        assert!(chart["rating"] == rating && chart.get("patterns").is_none(), "{chart}");
    }
    for (chart, _) in analysed.charts("?include=variants").await {
        assert!(chart.get("rating").is_none() && chart.get("patterns").is_none(), "{chart}");
    }
    // Each representation has a tag of its own.
    for path in [format!("/api/charts/{}", analysed.hash), format!("/api/chartsets/{}", analysed.id)] {
        let mut tags = Vec::new();
        for query in ["", "?include=rating", "?include=patterns", "?include=rating,patterns"] {
            let path = format!("{path}{query}");
            let tag = analysed.index.get(&path).await.header("etag").to_owned();
            let again = analysed.index.client.get_with(&path, &[("if-none-match", &tag)]).await;
            assert_eq!(again.status, 304, "{path}");
            assert!(!tags.contains(&tag), "{path}");
            tags.push(tag);
        }
    }
}

#[tokio::test]
async fn what_a_chart_does_not_have_is_omitted() {
    let analysed = Analysed::new().await;
    analysed.index.database.psql("UPDATE charts SET rating = NULL");
    let unknown = analysed.index.get(&format!("/api/charts/{}?include=rating", "0".repeat(64))).await;
    assert_eq!(unknown.json()["status"], "unknown");
    for (chart, _) in analysed.charts("?include=rating,patterns").await {
        assert!(chart.get("rating").is_none() && chart["patterns"]["lnNotes"] == 12, "{chart}");
    }
}

/// A chart that an older version stored gets its patterns by a backfill, although responses without are cached.
#[tokio::test]
async fn backfilled_patterns_are_served_at_once() {
    let analysed = Analysed::new().await;
    analysed.index.database.psql("UPDATE charts SET rating = NULL, patterns = NULL, analysis_version = 0");
    let query = "?include=rating,patterns";
    let plain = analysed.charts("").await;
    assert_eq!(analysed.charts(query).await, plain);
    analysed.index.indexer(&["backfill"]);
    let paths = [format!("/api/charts/{}", analysed.hash), format!("/api/chartsets/{}", analysed.id)];
    for path in paths {
        let is_served = async || {
            let body = analysed.index.get(&format!("{path}{query}")).await.json();
            body.to_string().contains(r#""patterns":{"#).then_some(())
        };
        within(CHANGE_TIMEOUT, is_served).await;
    }
    let charts = analysed.charts(query).await;
    let changes = analysed.index.get("/api/changes").await.json();
    let mut items = changes["items"].as_array().unwrap().iter();
    let set = items.find(|item| item["kind"] == "chartset").unwrap();
    for field in ["rating", "patterns"] {
        let served = charts.each_ref().map(|(chart, _)| chart.get(field));
        assert_eq!(served, [set["chartset"]["charts"][0].get(field); 3], "{field}");
    }
}
