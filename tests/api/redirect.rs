//! `GET /go/chartset/{id}`.

use super::*;

/// "302 with `Location`, `Cache-Control: public, max-age=300`"; contract, "Source page address".
#[tokio::test]
async fn a_set_leads_to_the_page_of_its_source() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec { title: "a".into(), ..ChartSpec::default() });
    library.osu("beta/7 pack/song/a.osu", ChartSpec { title: "b".into(), ..ChartSpec::default() });
    library.osu("alpha/no id/a.osu", ChartSpec { title: "c".into(), set_id: 34, ..ChartSpec::default() });
    library.osu("alpha/none/a.osu", ChartSpec { title: "d".into(), ..ChartSpec::default() });
    let index = Index::over(library).await;
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
        let answer = service.client().get(&format!("/go/chartset/{}", index.id_of(title).await)).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (302, location));
        assert_eq!(answer.header("cache-control"), "public, max-age=300");
    }
    let answer = service.client().get(&format!("/go/chartset/{}", index.id_of("d").await)).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (404, "application/problem+json"));
}

/// What replicas share is the source; where it has its page is a setting of each.
#[tokio::test]
async fn a_replica_redirects_to_its_own_source_page_whatever_another_one_kept() {
    let library = Library::new();
    library.osu("alpha/12 set/a.osu", ChartSpec { title: "set".into(), ..ChartSpec::default() });
    let index = Index::over(library).await;
    let path = format!("/go/chartset/{}", index.id_of("set").await);
    let variables = [("REDIS_URL", index.redis.url()), ("ALPHA_SOURCE_PAGE", "https://other.example/s")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let other = Service::start_with(index.database.url(), &options);
    let kept = async || {
        let (here, there) = (index.get(&path).await, other.client().get(&path).await);
        assert!(here.header("location").ends_with(".example/sets/12"), "{}", here.header("location"));
        assert_eq!(there.header("location"), "https://other.example/s/12");
    };
    kept().await;
    kept().await;
}
