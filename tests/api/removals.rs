//! Removed charts and chartsets at every endpoint (docs/api.md, "ROX file", "Chart preview", "Chart lookup",
//! "Batch lookup", "Variants", "Chartset detail" and "Source redirect").

use serde_json::json;

use super::variants::at_rate;
use super::*;

/// A path, its status before the removal without and with `If-None-Match`, and the `Cache-Control` of its 404.
type Row = (String, [u16; 2], &'static str);

/// Removes an entry and restores it, while both replicas have the responses in their caches. A removed entry is
/// 404 like an unknown one, even if the client sends `If-None-Match`.
async fn check(
    replicas: [&Index; 2],
    kind: &str,
    name: &str,
    rows: &[Row],
    while_removed: impl AsyncFnOnce(),
) {
    let index = replicas[0];
    let get_with_tag =
        async |path: &str, tag: &str| index.client.get_with(path, &[("if-none-match", tag)]).await;
    let mut tags = Vec::new();
    for (path, [status, with_tag], _) in rows {
        tags.push(index.get(path).await.header("etag").to_owned());
        assert_eq!(get_with_tag(path, tags.last().unwrap()).await.status, *with_tag, "{path}");
        for replica in replicas {
            assert_eq!(replica.get(path).await.status, *status, "{path}");
        }
    }
    index.indexer(&["remove", kind, name]);
    for ((path, _, cache_control), tag) in rows.iter().zip(&tags) {
        for response in [
            index.wait_for_status(path, 404).await,
            get_with_tag(path, tag).await,
            get_with_tag(path, "*").await,
            index.get(&path.replace(name, &"0".repeat(name.len()))).await,
        ] {
            assert_eq!(response.status, 404, "{path}");
            assert_eq!(response.header("cache-control"), *cache_control, "{path}");
            assert_eq!(response.header("content-type"), "application/problem+json", "{path}");
        }
        replicas[1].wait_for_status(path, 404).await;
    }
    while_removed().await;
    index.indexer(&["restore", kind, name]);
    for (path, [status, _], _) in rows {
        for replica in replicas {
            replica.wait_for_status(path, *status).await;
        }
    }
}

#[tokio::test]
async fn removed_entries_are_served_nowhere() {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", at_rate(100, "Hard")).note_hash();
    // A variant of it, which is in another chartset as well.
    let other = library.osu("alpha/1 one/b.osu", at_rate(110, "Fast")).note_hash();
    library.osu("alpha/2 two/b.osu", ChartSpec { title: "Other".into(), ..at_rate(110, "Fast") });
    let index = Index::new(library).await;
    let service = Service::with_variables(index.database.url(), &[("REDIS_URL", index.redis.url())]);
    let replica = Index { instance: Arc::clone(&index.instance), client: service.client() };
    let replicas = [&index, &replica];

    let [lookup, other_lookup] = [&chart, &other].map(|hash| format!("/api/charts/{hash}"));
    let statuses = async || {
        let batch = index.client.look_up("", &json!({"hashes": [chart, other]})).await.json();
        strings(&batch["items"], "status")
    };
    let with_variants = format!("{other_lookup}?include=variants");
    let variants = async || index.get(&with_variants).await.json()["variantsTotal"].clone();
    // A batch fills the cache entries of single lookups.
    for _ in 0..2 {
        assert_eq!(statuses().await, ["known", "known"]);
    }
    assert_eq!(variants().await, 1);
    let files = ["rox", "preview"].map(|file| (format!("{lookup}/{file}"), [200, 304], "public, max-age=60"));
    check(replicas, "chart", &chart, &files, async || {
        assert_eq!(index.get(&lookup).await.json()["status"], "unknown");
        assert_eq!(statuses().await, ["unknown", "known"]);
        within(CHANGE_TIMEOUT, async || (variants().await == 0).then_some(())).await;
    })
    .await;

    let id = index.id_of("Title").await;
    let (detail, source) = (format!("/api/chartsets/{id}"), format!("/go/chartset/{id}"));
    let rows = [(detail, [200, 304], "no-store"), (source, [302, 302], "no-store")];
    check(replicas, "chartset", &id, &rows, async || {
        index.ingest();
        within(CHANGE_TIMEOUT, async || (index.titles("").await == ["Other"]).then_some(())).await;
        for (path, ..) in &rows {
            assert_eq!(index.get(path).await.status, 404, "{path}");
        }
        let sources = index.get(&other_lookup).await.json()["sources"].clone();
        assert_eq!(strings(&sources, "ref"), ["2"], "its chart stays known");
    })
    .await;
}
