//! The page of a chartset.

use super::*;

#[tokio::test]
async fn page_has_charts_tags_and_sources() {
    let site = Site::new(&library()).await;
    site.set_curves(255);
    let id = site.id_of("One").await;
    let html = site.html(&format!("/chartsets/{id}")).await;
    assert_eq!(links(&html, "/charts/").len(), 2);
    for part in [
        "<h1><bdi>One</bdi></h1>",
        "href=\"/creators/zoe\"",
        &format!("href=\"/go/chartset/{id}\""),
        "href=\"/?q=piano\"",
        "href=\"/?q=%E6%97%8B\"",
        "href=\"https://alpha.example/sets/10\"",
        "read from this very source",
        &format!("<link rel=\"alternate\" type=\"application/json\" href=\"/api/chartsets/{id}\">"),
        "<meta property=\"og:title\" content=\"Artist – One\">",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches(" d=\"M0 16V0h48V16\"/>").count(), 2);
}

#[tokio::test]
async fn charts_are_ordered_by_keys_and_rating() {
    let library = Library::new();
    for (number, difficulty) in ["Unrated", "Hard", "Easy"].into_iter().enumerate() {
        let number = number.try_into().unwrap();
        let spec = ChartSpec { difficulty: difficulty.into(), ..ChartSpec::numbered(number) };
        library.osu(&format!("alpha/1 set/{difficulty}.osu"), spec);
    }
    let site = Site::new(&library).await;
    site.set_rating("Hard", 320);
    site.set_rating("Easy", 180);
    let html = site.html(&format!("/chartsets/{}", site.id_of("Title").await)).await;
    let rows: Vec<_> = html
        .split("<tr class=\"")
        .skip(1)
        .map(|row| (between(row, "", "</td>"), between(row, "<bdi>", "</bdi>")))
        .collect();
    assert_eq!(
        rows,
        [
            ("l2\"><td><b class=\"level\"><span class=\"vh\">difficulty </span>1.80</b>", "Easy"),
            ("l4\"><td><b class=\"level\"><span class=\"vh\">difficulty </span>3.20</b>", "Hard"),
            ("l0\"><td><b class=\"level\"><span class=\"vh\">peak </span>2/s</b>", "Unrated")
        ]
    );
}

#[tokio::test]
async fn set_without_a_source_says_so() {
    let site = Site::of_library().await;
    let html = site.html(&format!("/chartsets/{}", site.id_of("Three").await)).await;
    assert!(html.contains("This set has no public source") && !html.contains("/go/chartset/"), "{html}");
}

#[tokio::test]
async fn unknown_set_is_404_and_not_indexed() {
    let site = Site::of_library().await;
    for id in ["0000000000000000", "x"] {
        let response = site.get(&format!("/chartsets/{id}")).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (404, HTML));
        assert!(String::from_utf8(response.body).unwrap().contains("noindex"));
    }
}
