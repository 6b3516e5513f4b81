//! The page of a creator.

use super::*;

#[tokio::test]
async fn page_has_the_charts_of_a_creator() {
    let site = Site::with(&library(), &[PUBLIC_URL]).await;
    site.set_rating("Easy", 120);
    site.set_rating("Hard", 310);
    site.database.psql(
        "UPDATE charts SET first_seen_ms = 1000000000000
         WHERE hash = (SELECT chart_hash FROM chartset_charts WHERE difficulty = 'Only')",
    );
    let list = site.html("/").await;
    assert!(list.contains("<a href=\"/creators/zoe\"><bdi>zoe</bdi></a>"), "{list}");
    let html = site.html("/creators/zoe").await;
    assert_eq!(links(&html, "/charts/").len(), 3);
    for part in [
        "<h1>Charts by <bdi>zoe</bdi></h1>",
        "3 charts in 2 sets",
        "<i class=\"k k4\">4K</i> 2</span>",
        "<li><span>2001-09</span>",
        "<a class=\"button\" href=\"/?creator=zoe\">",
        "<link rel=\"canonical\" href=\"https://charts.example/creators/zoe\">",
        "type=\"application/atom+xml\" title=\"Charts by zoe\" href=\"/creators/zoe/feed.atom\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let histogram = between(&html, "<div class=\"histogram still\">", "</div>");
    assert!(histogram.contains("class=\"l1\"") && histogram.contains("class=\"l4\""), "{histogram}");
}

/// In upper case and as a part they are other names; the filter of the list takes them.
#[tokio::test]
async fn names_are_compared_exactly() {
    let library = Library::new();
    for (number, creator) in [(1, "a/b %"), (2, "旋 律"), (3, "Zoe")] {
        let chart = ChartSpec { creator: creator.to_owned(), ..ChartSpec::numbered(number) };
        library.osu(&format!("alpha/{number} set/a.osu"), chart);
    }
    let site = Site::new(&library).await;
    let list = site.html("/").await;
    let pages = links(&list, "/creators/");
    assert_eq!(pages.len(), 3, "{list}");
    for page in pages {
        assert_eq!(links(&site.html(page).await, "/charts/").len(), 1, "{page}");
    }
    for name in ["zoe", "Zo", "a", "%00", "%FF", ".%20.", &"x".repeat(201)] {
        for path in [format!("/creators/{name}"), format!("/creators/{name}/feed.atom")] {
            let response = site.get(&path).await;
            assert_eq!((response.status.as_u16(), response.header("content-type")), (404, HTML), "{path}");
        }
    }
}

#[tokio::test]
async fn feed_has_what_came_last() {
    let site = Site::new(&library()).await;
    site.database.psql(
        "UPDATE charts SET first_seen_ms = 1
         WHERE hash = (SELECT chart_hash FROM chartset_charts WHERE difficulty = 'Easy')",
    );
    let text = String::from_utf8(site.get("/creators/zoe/feed.atom").await.body).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let titles: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(titles.len(), 4, "{text}");
    assert_eq!((titles[0], titles[3]), ("Chart Index: charts by zoe", "Artist – One [4K Easy]"));
    assert!(text.contains("<id>urn:chart-index:creators:zoe</id>"), "{text}");
}
