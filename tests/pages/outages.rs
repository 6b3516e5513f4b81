//! Pages while PostgreSQL is unavailable.

use std::time::Duration;

use chart_index_tests::{PrivatePostgres, within};

use super::*;

#[tokio::test]
async fn unavailable_index_is_a_503_page_and_recovers() {
    let postgres = PrivatePostgres::start();
    let library = library();
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let service = Service::start(postgres.url());
    let client = service.client();
    let get = async |path: &str| client.get_with(path, &[BROWSER]).await;
    let id = client.get("/api/chartsets?q=One").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let cached = get("/").await;
    assert_eq!(cached.status, 200);
    postgres.kill();
    for path in [
        "/?q=new",
        &format!("/chartsets/{id}"),
        &format!("/charts/{}", "0".repeat(64)),
        "/feed.atom",
        "/random",
        "/ratings",
    ] {
        let response = get(path).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (503, HTML), "{path}");
        assert!(response.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds >= 1));
        let html = String::from_utf8(response.body).unwrap();
        assert!(html.contains("The index is unavailable") && html.contains("data-retry-after"), "{html}");
    }
    assert_eq!(get("/").await.status, 200, "the list is cached");
    assert_eq!(get("/about").await.status, 200, "it needs no database");
    postgres.restart();
    let recovered = async || (get("/?q=new").await.status == 200).then_some(());
    within(Duration::from_secs(20), recovered).await;
}
