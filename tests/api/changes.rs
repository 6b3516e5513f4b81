//! `GET /api/changes` (docs/api.md, "Changes").

use serde_json::{Value, json};

use super::*;

/// A library of two sets with a chart each, and one with both charts.
fn three_sets() -> Library {
    let library = Library::new();
    let spec = |set_id, keys| ChartSpec { keys, set_id, ..ChartSpec::default() };
    library.osu("alpha/12 one/a.osu", spec(12, 4));
    library.osu("alpha/13 two/b.osu", spec(13, 7));
    library.osu("alpha/14 both/a.osu", spec(14, 4));
    library.osu("alpha/14 both/b.osu", spec(14, 7));
    library
}

async fn shared_index() -> Index {
    static THREE_SETS: Shared<Instance> = Shared::empty();
    Index::shared(&THREE_SETS, three_sets).await
}

async fn page(index: &Index, query: &str) -> Value {
    let response = index.get(&format!("/api/changes{query}")).await;
    assert_eq!(response.status, 200, "{query}: {}", String::from_utf8_lossy(&response.body));
    response.json()
}

fn sequences(page: &Value) -> Vec<u64> {
    page["items"].as_array().unwrap().iter().map(|item| item["sequence"].as_u64().unwrap()).collect()
}

/// The items of a kind.
fn of_kind<'a>(page: &'a Value, kind: &str) -> Vec<&'a Value> {
    page["items"].as_array().unwrap().iter().filter(|item| item["kind"] == kind).collect()
}

#[tokio::test]
async fn feed_has_every_chart_and_chartset() {
    let index = shared_index().await;
    let all = page(&index, "").await;
    assert_eq!(fields(&all), ["hasMore", "items", "lineage", "next"]);
    assert_eq!(all["hasMore"], false);
    assert_eq!(all["next"].as_u64(), sequences(&all).last().copied());
    assert!(sequences(&all).is_sorted_by(|a, b| a < b));
    let charts = of_kind(&all, "chart");
    assert_eq!(charts.len(), 2);
    for chart in charts {
        assert_eq!(fields(chart), ["change", "changedAtMs", "chartHash", "kind", "sequence"]);
        let lookup = index.get(&format!("/api/charts/{}", chart["chartHash"].as_str().unwrap())).await;
        assert_eq!(lookup.json()["status"], "known");
    }
    let sets = of_kind(&all, "chartset");
    assert_eq!(sets.len(), 3);
    for set in sets {
        assert_eq!(fields(set), ["change", "changedAtMs", "chartset", "id", "kind", "sequence"]);
        assert_eq!((&set["change"], &set["id"]), (&json!("added"), &set["chartset"]["id"]));
        let detail = index.get(&format!("/api/chartsets/{}", set["id"].as_str().unwrap())).await.json();
        let record_charts = set["chartset"]["charts"].as_array().unwrap();
        assert_eq!(detail["charts"].as_array().unwrap().len(), record_charts.len());
        assert_eq!(detail["charts"][0]["chart"]["hash"], record_charts[0]["hash"]);
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let index = shared_index().await;
    let all = page(&index, "").await;
    let (mut after, mut items) = (0, Vec::new());
    loop {
        let part = page(&index, &format!("?after={after}&limit=2")).await;
        assert!(part["items"].as_array().unwrap().len() <= 2);
        items.extend(part["items"].as_array().unwrap().clone());
        after = part["next"].as_u64().unwrap();
        if part["hasMore"] == false {
            break;
        }
    }
    assert_eq!(items, *all["items"].as_array().unwrap());
    let end = page(&index, &format!("?after={after}")).await;
    let lineage = &all["lineage"];
    assert_eq!(end, json!({"items": [], "next": after, "hasMore": false, "lineage": lineage}));
    let of_lineage = format!("?after={after}&lineage={}", lineage.as_str().unwrap());
    assert_eq!(page(&index, &of_lineage).await, end);
    for after in [0, after] {
        let other = index.get(&format!("/api/changes?after={after}&lineage=0123456789abcdef")).await;
        assert_eq!((other.status.as_u16(), &other.json()["type"]), (410, &json!("/problems/changes-lost")));
    }
}

#[tokio::test]
async fn removals_are_tombstones() {
    let index = Index::new(three_sets()).await;
    let before = page(&index, "").await["next"].as_u64().unwrap();
    let hash = of_kind(&page(&index, "").await, "chart")[0]["chartHash"].as_str().unwrap().to_owned();
    index.indexer(&["remove", "chart", &hash]);
    let after = page(&index, &format!("?after={before}")).await;
    let chart = of_kind(&after, "chart")[0];
    assert_eq!((&chart["chartHash"], &chart["change"]), (&json!(hash), &json!("removed")));
    let sets = of_kind(&after, "chartset");
    // The set of this chart alone is gone; the set of both has lost a chart.
    let mut changes: Vec<_> = sets.iter().map(|set| set["change"].as_str().unwrap()).collect();
    changes.sort_unstable();
    assert_eq!(changes, ["removed", "updated"]);
    let removed = sets.iter().find(|set| set["change"] == "removed").unwrap();
    assert_eq!(fields(removed), ["byOperator", "change", "changedAtMs", "id", "kind", "sequence"]);
    index.indexer(&["restore", "chart", &hash]);
    let restored = page(&index, &format!("?after={}", after["next"])).await;
    assert_eq!(of_kind(&restored, "chart")[0]["change"], "added");
}

#[tokio::test]
async fn full_pages_are_immutable_and_the_last_is_not() {
    let index = shared_index().await;
    for (query, policy) in [
        ("limit=2", "public, max-age=86400, immutable"),
        ("limit=5", "public, max-age=86400, immutable"),
        ("limit=6", "public, max-age=10"),
    ] {
        let path = format!("/api/changes?{query}");
        let response = index.get(&path).await;
        assert_eq!(response.header("cache-control"), policy, "{query}");
        assert_eq!(response.header("vary"), "Accept-Encoding", "{query}");
        let tag = response.header("etag");
        let again = index.client.get_with(&path, &[("if-none-match", tag)]).await;
        assert_eq!((again.status.as_u16(), again.header("cache-control")), (304, policy), "{query}");
        assert_eq!(again.header("etag"), tag, "{query}");
    }
}

/// Changes that were lost, as after a restore.
#[tokio::test]
async fn lost_changes_are_410() {
    let index = Index::new(three_sets()).await;
    let last = page(&index, "").await["next"].as_u64().unwrap();
    for lost in [last + 1, 9_007_199_254_740_991, u64::MAX] {
        let response = index.get(&format!("/api/changes?after={lost}")).await;
        assert_eq!(response.status, 410, "{lost}");
        assert_eq!(response.header("cache-control"), "no-store");
        let problem = response.json();
        assert_eq!(
            (&problem["type"], &problem["parameter"]),
            (&json!("/problems/changes-lost"), &json!("after"))
        );
    }
    index.database.psql("UPDATE change_feed SET origin = 0");
    index.library.osu("alpha/15 new/c.osu", ChartSpec { keys: 5, set_id: 15, ..ChartSpec::default() });
    index.ingest();
    let after_gap = page(&index, &format!("?after={last}")).await;
    assert!(sequences(&after_gap)[0] > last + (1 << 32));
    assert_eq!(index.get(&format!("/api/changes?after={}", last + 1)).await.status, 410);
}
