//! From a note hash to a download (docs/api.md, "Extension fields" and "Chart redirect").

use serde_json::{Value, json};

use super::*;

/// A chart in a set, in a pack, and in a folder without a source, where its title is another one.
struct Downloads {
    index: Index,
    hash: String,
}

fn library() -> Library {
    let library = Library::new();
    let chart = |title: &str, difficulty: &str| ChartSpec {
        title: title.into(),
        difficulty: difficulty.into(),
        ..ChartSpec::numbered(1)
    };
    library.osu("alpha/12 one/a.osu", chart("Set", "Hard"));
    library.osu("beta/7 pack/song/a.osu", chart("Song", "Harder"));
    library.osu("alpha/none/a.osu", chart("Folder", "Hardest"));
    library
}

impl Downloads {
    async fn new() -> Self {
        Self { index: Index::new(library()).await, hash: ChartSpec::numbered(1).note_hash() }
    }

    /// One that tests share, which only read it.
    async fn shared() -> Self {
        static DOWNLOADS: Shared<Instance> = Shared::empty();
        let index = Index::shared(&DOWNLOADS, library).await;
        Self { index, hash: ChartSpec::numbered(1).note_hash() }
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.index.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        response.json()
    }

    async fn lookup(&self, include: &str) -> Value {
        self.json(&format!("/api/charts/{}?include={include}", self.hash)).await
    }

    async fn batch(&self, include: &str) -> Value {
        let query = format!("?include={include}");
        let response = self.index.client.look_up(&query, &json!({"hashes": [self.hash]})).await;
        response.json()["items"][0].take()
    }

    /// What `include=chartsets` lists.
    async fn chartsets(&self) -> Value {
        let mut chartsets = Vec::new();
        for (title, difficulty) in [("Set", "Hard"), ("Song", "Harder"), ("Folder", "Hardest")] {
            let id = self.index.id_of(title).await;
            let mut chartset = json!({"id": id, "title": title, "difficulty": difficulty});
            if title != "Folder" {
                chartset["downloadUrl"] = json!(format!("/go/chartset/{id}"));
            }
            chartsets.push(chartset);
        }
        json!(chartsets)
    }
}

fn take(value: &mut Value, field: &str) -> Value {
    value.as_object_mut().unwrap().remove(field).unwrap_or_else(|| panic!("{field} in {value}"))
}

/// Removes the links of sources, and returns them.
fn take_links(sources: &mut Value) -> Vec<Value> {
    sources.as_array_mut().unwrap().iter_mut().map(|source| take(source, "url")).collect()
}

#[tokio::test]
async fn lookup_has_chartsets_and_links() {
    let downloads = Downloads::shared().await;
    let plain = downloads.json(&format!("/api/charts/{}", downloads.hash)).await;
    let chartsets = downloads.chartsets().await;
    let links = ["https://alpha.example/sets/12", "https://beta.example/packs/7"];
    for mut extended in [downloads.lookup("chartsets,links").await, downloads.batch("links,chartsets").await]
    {
        assert_eq!(take(&mut extended, "chartsets"), chartsets);
        assert_eq!(take_links(&mut extended["sources"]), links);
        assert_eq!(extended, plain, "nothing else differs");
    }
    let mut linked = downloads.lookup("links").await;
    assert_eq!(take_links(&mut linked["sources"]), links);
    assert_eq!(linked, plain);
    let unknown = downloads.json(&format!("/api/charts/{}?include=chartsets,links", "0".repeat(64))).await;
    assert_eq!(fields(&unknown), ["chartHash", "status", "ttlMs"]);
}

#[tokio::test]
async fn variants_have_chartsets_and_links() {
    let downloads = Downloads::new().await;
    let variant = "ab".repeat(32);
    let other = downloads.index.library.osu("alpha/13 two/a.osu", ChartSpec::numbered(2)).note_hash();
    downloads.index.ingest();
    downloads.index.database.psql(&format!("UPDATE charts SET variant = '\\x{variant}'"));
    let chartsets = downloads.chartsets().await;
    let of =
        |items: &Value| items.as_array().unwrap().iter().find(|item| item["hash"] == downloads.hash).cloned();
    let listed = downloads.json(&format!("/api/variants/{variant}?include=chartsets,links")).await;
    let path = format!("/api/charts/{other}?include=variants,chartsets,links");
    for items in [&listed["items"], &downloads.json(&path).await["variants"]] {
        let item = of(items).unwrap();
        assert_eq!(
            (&item["chartsets"], &item["sources"][0]["url"]),
            (&chartsets, &json!("https://alpha.example/sets/12"))
        );
    }
    let plain = downloads.json(&format!("/api/variants/{variant}")).await;
    assert_eq!(fields(&of(&plain["items"]).unwrap()), ["difficulty", "hash", "lengthMs", "sources", "title"]);
    let refused = downloads.index.get(&format!("/api/variants/{variant}?include=rating")).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["parameter"]), (400, &json!("include")));
}

#[tokio::test]
async fn detail_has_chartsets_links_and_the_time_of_its_change() {
    let downloads = Downloads::shared().await;
    let id = downloads.index.id_of("Set").await;
    let path = format!("/api/chartsets/{id}");
    let plain = downloads.json(&path).await;
    let mut extended = downloads.json(&format!("{path}?include=updated,chartsets,links")).await;
    let updated = take(&mut extended, "updatedAtMs");
    assert_eq!(take(&mut extended["charts"][0], "chartsets"), downloads.chartsets().await);
    assert_eq!(take_links(&mut extended["sources"]), ["https://alpha.example/sets/12"]);
    assert_eq!(extended, plain, "nothing else differs");

    let changes = downloads.json("/api/changes").await;
    let change = changes["items"].as_array().unwrap().iter().find(|item| item["id"] == id.as_str()).unwrap();
    assert_eq!(updated, change["chartset"]["updatedAtMs"]);
    for query in ["include=updated", "include=rating,updated&sort=title", "include=updated&after=start"] {
        let list = downloads.json(&format!("/api/chartsets?{query}")).await;
        let item = list["items"].as_array().unwrap().iter().find(|item| item["id"] == id.as_str()).unwrap();
        assert_eq!(item["updatedAtMs"], updated, "{query}");
    }
}

/// What a chartset has in lookups of a chart may come from another chart of it.
#[tokio::test]
async fn chartset_that_changes_by_another_chart_is_read_again() {
    let library = Library::new();
    let first = ChartSpec { title: "First".into(), set_id: 34, ..ChartSpec::numbered(1) };
    let first = library.osu("alpha/none/a.osu", first).note_hash();
    let second = ChartSpec { title: "Second".into(), keys: 7, ..ChartSpec::numbered(2) };
    let second = library.osu("alpha/none/b.osu", second).note_hash();
    let index = Index::new(library).await;
    let path = format!("/api/charts/{second}?include=chartsets");
    let chartset = async || index.get(&path).await.json()["chartsets"][0].take();
    let before = chartset().await;
    assert_eq!(before["title"], "First");
    assert!(before.get("downloadUrl").is_some(), "{before}");
    let redirect = format!("/go/chart/{second}");
    assert_eq!(index.get(&redirect).await.header("location"), "https://alpha.example/sets/34");

    index.indexer(&["remove", "chart", &first]);
    within(CHANGE_TIMEOUT, async || {
        let after = chartset().await;
        (after["title"] == "Second" && after.get("downloadUrl").is_none()).then_some(())
    })
    .await;
    assert_eq!(
        index.wait_for_status(&redirect, 404).await.header("content-type"),
        "application/problem+json"
    );
}

#[tokio::test]
async fn removed_chartsets_and_charts_are_in_no_response() {
    let downloads = Downloads::new().await;
    let (song, folder) = (downloads.index.id_of("Song").await, downloads.index.id_of("Folder").await);
    let (lookup, redirect) = (
        format!("/api/charts/{}?include=chartsets,links", downloads.hash),
        format!("/go/chart/{}", downloads.hash),
    );
    let detail = format!("/api/chartsets/{folder}?include=chartsets");
    let titles = async |path: &str, pointer: &str| {
        let body = downloads.index.get(path).await.json();
        strings(body.pointer(pointer).unwrap_or(&json!([])), "title")
    };
    let all = ["Set", "Song", "Folder"];
    assert_eq!(titles(&lookup, "/chartsets").await, all);
    assert_eq!(titles(&detail, "/charts/0/chartsets").await, all);
    assert_eq!(downloads.index.get(&redirect).await.header("location"), "https://alpha.example/sets/12");

    downloads.index.indexer(&["remove", "chartset", &downloads.index.id_of("Set").await]);
    within(CHANGE_TIMEOUT, async || {
        let left = [titles(&lookup, "/chartsets").await, titles(&detail, "/charts/0/chartsets").await];
        let location = downloads.index.get(&redirect).await.header("location").to_owned();
        (left == [["Song", "Folder"], ["Song", "Folder"]] && location.ends_with("packs/7")).then_some(())
    })
    .await;

    downloads.index.indexer(&["remove", "chart", &downloads.hash]);
    assert_eq!(downloads.index.wait_for_status(&redirect, 404).await.header("cache-control"), "no-store");
    within(CHANGE_TIMEOUT, async || {
        let lookup = downloads.index.get(&lookup).await.json();
        (fields(&lookup) == ["chartHash", "status", "ttlMs"]).then_some(())
    })
    .await;
    assert_eq!(downloads.index.get(&format!("/api/chartsets/{song}?include=chartsets")).await.status, 404);
}

#[tokio::test]
async fn chart_redirects_to_its_best_source() {
    let downloads = Downloads::shared().await;
    let response = downloads.index.get(&format!("/go/chart/{}", downloads.hash)).await;
    assert_eq!(
        (response.status.as_u16(), response.header("location")),
        (302, "https://alpha.example/sets/12")
    );
    assert_eq!(response.header("cache-control"), "public, max-age=300");
    for (hash, status) in [("0".repeat(64), 404), ("x".to_owned(), 400)] {
        assert_eq!(downloads.index.get(&format!("/go/chart/{hash}")).await.status, status, "{hash}");
    }
}

/// Replicas share what they cache. The addresses of source pages are settings of each replica.
#[tokio::test]
async fn links_are_those_of_the_replica() {
    let downloads = Downloads::shared().await;
    let index = &downloads.index;
    let variables = [("REDIS_URL", index.redis.url()), ("ALPHA_SOURCE_PAGE", "https://other.example/s")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let other = Service::start_with(index.database.url(), &options);
    let lookup = format!("/api/charts/{}?include=links", downloads.hash);
    let redirect = format!("/go/chartset/{}", index.id_of("Set").await);
    for _ in 0..2 {
        for (client, url) in [
            (&index.client, "https://alpha.example/sets/12"),
            (&other.client(), "https://other.example/s/12"),
        ] {
            assert_eq!(client.get(&lookup).await.json()["sources"][0]["url"], url);
            assert_eq!(client.get(&redirect).await.header("location"), url);
        }
    }
}
