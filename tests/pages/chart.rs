//! The page of a chart.

use std::time::Duration;

use chart_index_tests::within;

use super::*;

#[tokio::test]
async fn page_names_every_set_that_holds_the_chart() {
    let library = library();
    let chart =
        library.osu("alpha/30 copy/copy.osu", ChartSpec { title: "Copy".into(), ..ChartSpec::numbered(5) });
    library.osu(
        "alpha/40 same/same.osu",
        ChartSpec { title: "Same".into(), difficulty: "Other name".into(), ..ChartSpec::numbered(5) },
    );
    let site = Site::new(&library).await;
    let hash = chart.note_hash();
    let html = site.html(&format!("/charts/{hash}")).await;
    let (copy, same) = (site.id_of("Copy").await, site.id_of("Same").await);
    for part in [
        "<bdi>Copy</bdi></a></nav>",
        &format!("href=\"/chartsets/{copy}\""),
        &format!("href=\"/chartsets/{same}\""),
        "as <bdi>Other name</bdi>",
        &format!("<code id=\"hash\">{hash}</code>"),
        &format!("href=\"/api/charts/{hash}/rox\""),
        &format!(
            "<section id=\"preview\" aria-label=\"Preview\" data-hash=\"{hash}\" data-length-ms=\"60000\" data-keys=\"4\""
        ),
        &format!("<link rel=\"alternate\" type=\"application/json\" href=\"/api/charts/{hash}\">"),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[tokio::test]
async fn similar_charts_are_linked() {
    let library = Library::new();
    let hashes = [200, 201, 202].map(|count: i64| {
        let notes = (0..count).map(|i| (100 * i, u8::try_from(i % 4).unwrap(), None)).collect();
        let spec = ChartSpec { notes, ..ChartSpec::default() };
        library.osu(&format!("alpha/{count} set/a.osu"), spec).note_hash()
    });
    let site = Site::new(&library).await;
    let html = site.html(&format!("/charts/{}", hashes[0])).await;
    let mut found = links(between(&html, "Similar charts</h2>", "</table>"), "/charts/");
    found.sort_unstable();
    let mut expected = [1, 2].map(|other: usize| format!("/charts/{}", hashes[other]));
    expected.sort_unstable();
    assert_eq!(found, expected);
    // At least half as much of its most frequent pattern.
    for part in
        ["/?keys=4&#38;match=chart&#38;order=", "pattern=stream%3A50", ">Easier ones</a>", ">harder ones</a>"]
    {
        assert!(html.contains(part), "{part}: {html}");
    }
    for link in links(&html, "/?keys=4&#38;match=chart") {
        site.html(&link.replace("&#38;", "&")).await;
    }
}

#[tokio::test]
async fn chart_with_rare_keys_is_compared_with_all() {
    let site = Site::new(&library()).await;
    site.set_percentiles();
    site.set_rating("Hard", 300);
    let set = site.html(&format!("/chartsets/{}", site.id_of("One").await)).await;
    let html = site.html(links(&set, "/charts/")[1]).await;
    assert!(html.contains("Hard, harder than 50% of all charts"), "{html}");
    assert!(html.contains("Difficulty among all charts</h2>"), "{html}");
    assert!(html.contains("<path class=\"mark\" d=\"M12 0v48\"/>"), "{html}");
}

#[tokio::test]
async fn page_has_the_rating_and_patterns() {
    let library = Library::new();
    let notes = (0..200).map(|i: i64| (100 * i, u8::try_from(i % 4).unwrap(), None)).collect();
    let stream = library.osu("alpha/1 set/a.osu", ChartSpec { notes, ..ChartSpec::default() }).note_hash();
    let short = library.osu("alpha/2 set/b.osu", ChartSpec::numbered(1)).note_hash();
    let site = Site::new(&library).await;
    let html = site.html(&format!("/charts/{stream}")).await;
    for part in [
        "class=\"level\"><span class=\"vh\">difficulty </span>",
        "<rect class=\"p5\" x=\"0\" width=\"100\" height=\"1\"/></svg>",
        "<i class=\"p5\"></i>stream <b>100%</b></li>",
        "<dt>Rows</dt><dd>10/s <small>at the median",
        "href=\"/docs/patterns\"",
        "href=\"/docs/rating\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let patterns = between(&html, "<ul class=\"legend\">", "</ul>");
    assert_eq!(patterns.matches("<li").count(), 1, "only the classes that occur: {patterns}");
    let html = site.html(&format!("/charts/{short}")).await;
    assert!(
        !html.contains("difficulty </span>") && html.contains("peak </span>2/s"),
        "it has no rating: {html}"
    );
    site.database.psql("UPDATE charts SET analysis_version = 0");
    let other = Service::start(site.database.url());
    let html = other.client().get_with(&format!("/charts/{stream}"), &[BROWSER]).await;
    let html = String::from_utf8(html.body).unwrap();
    assert!(!html.contains("Patterns</h2>") && !html.contains("difficulty </span>"), "not computed: {html}");
}

#[tokio::test]
async fn other_charts_of_the_set_are_linked() {
    let site = Site::of_library().await;
    let id = site.id_of("One").await;
    let set = site.html(&format!("/chartsets/{id}")).await;
    let charts = links(&set, "/charts/");
    let html = site.html(charts[1]).await;
    assert!(
        html.contains(&format!("<a href=\"/chartsets/{id}\"><bdi>One</bdi></a>, 2 charts</nav>")),
        "{html}"
    );
    let siblings = between(&html, "aria-label=\"Charts of this set\">", "</nav>");
    assert_eq!(links(siblings, "/charts/"), charts);
    assert!(siblings.contains(&format!("href=\"{}\" aria-current=\"page\"", charts[1])), "{siblings}");
    assert!(siblings.contains("7K</i> <bdi>Hard</bdi>"), "{siblings}");
    let only =
        links(&site.html(&format!("/chartsets/{}", site.id_of("Two").await)).await, "/charts/")[0].to_owned();
    assert!(!site.html(&only).await.contains("Charts of this set"));
}

#[tokio::test]
async fn conversions_are_linked_with_their_rate() {
    let library = Library::new();
    let at_rate = |percent: i64| {
        let note = |i: i64| (12_500 * i / percent, u8::try_from((i * i + i / 3 + i / 8) % 5).unwrap(), None);
        ChartSpec { keys: 5, notes: (0..64).map(note).collect(), ..ChartSpec::default() }
    };
    let original = library.osu("alpha/1 set/a.osu", at_rate(100)).note_hash();
    let faster = library.osu("beta/3 pack/song/b.osu", at_rate(125)).note_hash();
    let site = Site::new(&library).await;
    let html = site.html(&format!("/charts/{original}")).await;
    let also = between(&html, "<h2>Also as</h2>", "</ul>");
    assert_eq!(links(also, "/charts/"), [format!("/charts/{faster}")]);
    assert!(also.contains(", 1.25x, in Beta pack 3</li>"), "{also}");
    let html = site.html(&format!("/charts/{faster}")).await;
    assert!(between(&html, "<h2>Also as</h2>", "</ul>").contains(", 0.8x, in Alpha set 1</li>"), "{html}");
}

/// A creator without other charts has no page either.
#[tokio::test]
async fn removed_chart_is_404_and_not_indexed() {
    let library = Library::new();
    let hash = library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1)).note_hash();
    let site = Site::new(&library).await;
    let (path, creator) = (format!("/charts/{hash}"), "/creators/creator");
    site.html(&path).await;
    assert_eq!(links(&site.html(creator).await, "/charts/"), [&*path]);
    indexer(site.database.url(), &["remove", "chart", &hash]).succeeded();
    let removed = async || Some(site.get(&path).await).filter(|response| response.status == 404);
    let (response, _) = within(Duration::from_secs(10), removed).await;
    let html = String::from_utf8(response.body).unwrap();
    assert!(html.contains("noindex") && html.contains("<h1>No chart is at this address</h1>"), "{html}");
    within(Duration::from_secs(10), async || (site.get(creator).await.status == 404).then_some(())).await;
}

#[tokio::test]
async fn malformed_hash_is_400() {
    let site = Site::empty().await;
    let response = site.get("/charts/x").await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (400, HTML));
    assert_eq!(site.get(&format!("/charts/{}", "0".repeat(64))).await.status, 404);
}
