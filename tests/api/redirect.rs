//! `GET /go/chartset/{id}` (docs/api.md, "Source redirect").

use super::*;

/// 302 to the page of the public source, cacheable for 300 seconds; 404 without a public source. Then
/// neither the list nor the detail has a link to it.
#[tokio::test]
async fn chartset_redirects_to_its_source_page() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec { title: "a".into(), ..ChartSpec::default() });
    library.osu("beta/7 pack/song/a.osu", ChartSpec { title: "b".into(), ..ChartSpec::default() });
    library.osu("alpha/no id/a.osu", ChartSpec { title: "c".into(), set_id: 34, ..ChartSpec::default() });
    library.osu("alpha/none/a.osu", ChartSpec { title: "d".into(), ..ChartSpec::numbered(1) });
    let index = Index::new(library).await;
    let options = ServiceOptions {
        variables: &[
            ("ALPHA_SOURCE_PAGE", "https://alpha.test/sets/"),
            ("BETA_SOURCE_PAGE", "https://beta.test/pack"),
        ],
        ..ServiceOptions::default()
    };
    let service = Service::start_with(index.database.url(), &options);
    for (title, location) in [
        ("a", "https://alpha.test/sets/12"),
        ("b", "https://beta.test/pack/7"),
        ("c", "https://alpha.test/sets/34"),
    ] {
        let response = service.client().get(&format!("/go/chartset/{}", index.id_of(title).await)).await;
        assert_eq!((response.status.as_u16(), response.header("location")), (302, location));
        assert_eq!(response.header("cache-control"), "public, max-age=300");
    }
    let response = service.client().get(&format!("/go/chartset/{}", index.id_of("d").await)).await;
    assert_eq!(
        (response.status.as_u16(), response.header("content-type")),
        (404, "application/problem+json")
    );
    let items = index.list("sort=title").await["items"].as_array().unwrap().clone();
    for item in &items[..3] {
        assert_eq!(item["downloadUrl"], format!("/go/chartset/{}", item["id"].as_str().unwrap()));
    }
    let detail = index.get(&format!("/api/chartsets/{}", items[3]["id"].as_str().unwrap())).await.json();
    for field in ["downloadUrl", "sourceKind"] {
        assert_eq!((items[3].get(field), detail.get(field)), (None, None), "{field}");
    }
    let lookup = index.get(&format!("/api/charts/{}", ChartSpec::numbered(1).note_hash())).await.json();
    assert_eq!([&lookup["sources"], &detail["sources"], &detail["tags"]], [&serde_json::json!([]); 3]);
}
