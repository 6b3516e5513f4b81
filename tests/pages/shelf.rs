//! Shelves: charts whose hashes are in the address.

use std::time::Duration;

use chart_index_tests::within;

use super::*;

/// The address of a shelf with the charts of a set, and their names in its order.
async fn shelf_of_set(site: &Site, title: &str) -> (String, Vec<String>) {
    let set = site.html(&format!("/chartsets/{}", site.id_of(title).await)).await;
    let charts: Vec<_> = links(&set, "/charts/").into_iter().map(str::to_owned).collect();
    let mut shelf = "/shelf".to_owned();
    for chart in &charts {
        let separator = if shelf.contains('?') { "&" } else { "?" };
        let response = site.get(&format!("{shelf}{separator}add=https%3A%2F%2Fcharts.example{chart}")).await;
        assert_eq!(response.status, 303, "{chart}");
        response.header("location").clone_into(&mut shelf);
    }
    (shelf, charts)
}

#[tokio::test]
async fn shelf_lists_its_charts_in_their_order() {
    let site = Site::public().await;
    let (shelf, charts) = shelf_of_set(&site, "One").await;
    assert_eq!(charts.len(), 2);
    let html = site.html(&shelf).await;
    assert_eq!(links(&html, "/charts/"), charts);
    assert!(html.contains("noindex"), "{html}");
    let text = site.get(links(&html, "/shelf.txt")[0]).await;
    let text = String::from_utf8(text.body).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with(&format!(" https://charts.example{}", charts[0])), "{text}");
    assert!(lines[0].contains("One [4K Easy], charted by zoe "), "{text}");
    let removed = charts[0].trim_start_matches("/charts/");
    let response = site.get(&format!("{shelf}&remove={removed}")).await;
    let html = site.html(response.header("location")).await;
    assert_eq!(links(&html, "/charts/"), charts[1..]);
}

#[tokio::test]
async fn charts_that_are_not_indexed_are_counted() {
    let site = Site::of_library().await;
    let added = site.get(&format!("/shelf?add={}", "0".repeat(64))).await;
    let html = site.html(added.header("location")).await;
    assert!(html.contains("1 chart of this shelf is not in the index. It may have been removed."), "{html}");
    assert!(!site.html("/shelf").await.contains("not in the index"));
}

#[tokio::test]
async fn mistakes_in_the_address_are_named() {
    let site = Site::empty().await;
    for path in ["/shelf?charts=AAAA", "/shelf.txt?charts=AAAA"] {
        let response = site.get(path).await;
        let html = String::from_utf8(response.body.clone()).unwrap();
        assert_eq!((response.status.as_u16(), response.header("content-type")), (400, HTML), "{path}");
        assert!(html.contains("has 3 bytes, not 32 for each chart"), "{html}");
    }
}

#[tokio::test]
async fn mistake_in_a_field_keeps_the_shelf() {
    let site = Site::of_library().await;
    let (shelf, charts) = shelf_of_set(&site, "One").await;
    for (field, text) in [("add", "%3Cb%3E"), ("remove", "x")] {
        let response = site.get(&format!("{shelf}&{field}={text}")).await;
        let html = String::from_utf8(response.body.clone()).unwrap();
        assert_eq!((response.status.as_u16(), response.header("content-type")), (400, HTML), "{field}");
        assert_eq!(links(&html, "/charts/"), charts, "{field}");
        let error = between(&html, "<p class=\"error\"", "</p>");
        assert!(error.contains(&format!("<b>{field}</b> accepts a note hash of 64 digits")), "{error}");
        let field_has_it =
            html.contains("value=\"&#60;b&#62;\" aria-invalid=\"true\" aria-describedby=\"add-error\"");
        assert_eq!(field_has_it, field == "add", "{html}");
    }
}

/// As feeds do.
#[tokio::test]
async fn text_has_paths_without_the_url_of_the_site() {
    let site = Site::of_library().await;
    let (shelf, charts) = shelf_of_set(&site, "One").await;
    let text = site.get(&shelf.replace("/shelf?", "/shelf.txt?")).await;
    let text = String::from_utf8(text.body).unwrap();
    assert!(text.lines().next().unwrap().ends_with(&format!(" {}", charts[0])), "{text}");
}

#[tokio::test]
async fn feed_follows_the_charts_of_the_shelf() {
    let site = Site::with(&library(), &[PUBLIC_URL]).await;
    let (shelf, charts) = shelf_of_set(&site, "One").await;
    let html = site.html(&shelf).await;
    let path = links(&html, "/shelf.atom?charts=")[0];
    let read = async || {
        let response = site.get(path).await;
        assert_eq!(response.header("content-type"), "application/atom+xml; charset=utf-8");
        String::from_utf8(response.body).unwrap()
    };
    let text = read().await;
    let document = roxmltree::Document::parse(&text).unwrap();
    let addresses: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("entry"))
        .filter_map(|entry| entry.children().find(|child| child.has_tag_name("link"))?.attribute("href"))
        .collect();
    let expected: Vec<_> = charts.iter().map(|path| format!("https://charts.example{path}")).collect();
    assert_eq!(addresses, expected);
    let updated = |text: &str| between(text, "<updated>", "</updated>").to_owned();
    let hash = charts[0].trim_start_matches("/charts/");
    // Times of a feed are in seconds.
    site.database.psql("UPDATE catalogue_changes SET changed_at_ms = 1000000000000");
    indexer(site.database.url(), &["remove", "chart", hash]).succeeded();
    within(Duration::from_secs(10), async || {
        let changed = read().await;
        (!changed.contains(&format!("chart:{hash}")) && *updated(&changed) > *"2020").then_some(())
    })
    .await;
    let mistake = site.get("/shelf.atom?charts=AAAA").await;
    assert_eq!(mistake.status, 400);
}
