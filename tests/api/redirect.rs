//! `GET /go/chartset/{id}` (docs/api.md, "Source redirect").

use super::*;

/// 302 to the page of the public source, cacheable for 300 seconds; 404 without a public source.
#[tokio::test]
async fn chartset_redirects_to_its_source_page() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec { title: "a".into(), ..ChartSpec::default() });
    library.osu("beta/7 pack/song/a.osu", ChartSpec { title: "b".into(), ..ChartSpec::default() });
    library.osu("alpha/no id/a.osu", ChartSpec { title: "c".into(), set_id: 34, ..ChartSpec::default() });
    library.osu("alpha/none/a.osu", ChartSpec { title: "d".into(), ..ChartSpec::default() });
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
}

/// Replicas share the cached source. The address of its page is a setting of each replica.
#[tokio::test]
async fn source_pages_are_not_cached_across_replicas() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec { title: "set".into(), ..ChartSpec::default() });
    let index = Index::new(library).await;
    let path = format!("/go/chartset/{}", index.id_of("set").await);
    let variables = [("REDIS_URL", index.redis.url()), ("ALPHA_SOURCE_PAGE", "https://other.example/s")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let other = Service::start_with(index.database.url(), &options);
    let assert_redirects = async || {
        let (here, there) = (index.get(&path).await, other.client().get(&path).await);
        assert!(here.header("location").ends_with(".example/sets/12"), "{}", here.header("location"));
        assert_eq!(there.header("location"), "https://other.example/s/12");
    };
    assert_redirects().await;
    assert_redirects().await;
}
