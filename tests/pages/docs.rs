//! The links of the documentation to charts and chartsets.

use super::*;

#[tokio::test]
async fn links_of_examples_lead_to_what_the_index_has() {
    let site = Site::of_library().await;
    let list = site.client.get("/api/chartsets").await.json();
    let items = list["items"].as_array().unwrap();
    let newest = items.iter().find(|item| item["downloadUrl"].is_string()).unwrap()["id"].as_str().unwrap();
    let detail = site.client.get(&format!("/api/chartsets/{newest}")).await.json();
    let hashes = detail["charts"].as_array().unwrap().iter().map(|entry| &entry["chart"]["hash"]);
    let hash = hashes.filter_map(|hash| hash.as_str()).min().unwrap();
    for (section, path) in [
        ("chart-lookup", format!("/api/charts/{hash}")),
        ("rox-file", format!("/api/charts/{hash}/rox")),
        ("chart-preview", format!("/api/charts/{hash}/preview")),
        ("chartset-detail", format!("/api/chartsets/{newest}")),
        ("source-redirect", format!("/go/chartset/{newest}")),
    ] {
        let html = site.html(&format!("/docs/api/{section}")).await;
        assert!(links(&html, &path).contains(&path.as_str()), "{path}");
        assert!(html.contains(&format!("https://charts.example{path}")), "{path} in code");
        assert!(matches!(site.client.get(&path).await.status.as_u16(), 200 | 302), "{path}");
    }
}

#[tokio::test]
async fn links_of_an_empty_index_are_those_of_the_samples() {
    let site = Site::empty().await;
    let html = site.html("/docs/api/chart-lookup").await;
    let charts = links(&html, "/api/charts/");
    assert!(
        charts.len() > 1 && charts.iter().all(|link| html.contains(&format!("GET {link}"))),
        "{charts:?}"
    );
}
