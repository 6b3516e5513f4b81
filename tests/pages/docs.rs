//! The links of the documentation to charts and chartsets.

use super::*;

#[tokio::test]
async fn links_of_examples_lead_to_what_the_index_has() {
    let site = Site::new(&library()).await;
    let html = site.html("/docs").await;
    let list = site.client.get("/api/chartsets").await.json();
    let items = list["items"].as_array().unwrap();
    let newest = items.iter().find(|item| item["downloadUrl"].is_string()).unwrap()["id"].as_str().unwrap();
    let detail = site.client.get(&format!("/api/chartsets/{newest}")).await.json();
    let hashes = detail["charts"].as_array().unwrap().iter().map(|entry| &entry["chart"]["hash"]);
    let hash = hashes.filter_map(|hash| hash.as_str()).min().unwrap();
    let own = [
        format!("/api/charts/{hash}"),
        format!("/api/charts/{hash}/rox"),
        format!("/api/charts/{hash}/preview"),
        format!("/api/chartsets/{newest}"),
        format!("/go/chartset/{newest}"),
    ];
    for path in own {
        assert!(links(&html, &path).contains(&path.as_str()), "{path}");
        assert!(matches!(site.client.get(&path).await.status.as_u16(), 200 | 302), "{path}");
    }
}

#[tokio::test]
async fn links_of_an_empty_index_are_those_of_the_samples() {
    let site = Site::new(&Library::new()).await;
    let html = site.html("/docs").await;
    let charts = links(&html, "/api/charts/");
    assert!(
        charts.len() > 3 && charts.iter().all(|link| html.contains(&format!("GET {link}"))),
        "{charts:?}"
    );
}
