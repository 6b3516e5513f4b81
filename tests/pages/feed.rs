//! Feeds of lists.

use super::*;

const ATOM: &str = "http://www.w3.org/2005/Atom";

#[tokio::test]
async fn feed_has_the_sets_of_the_list() {
    let site = Site::public().await;
    let response = site.get("/feed.atom?creator=zoe").await;
    assert_eq!(
        (response.status.as_u16(), response.header("content-type")),
        (200, "application/atom+xml; charset=utf-8")
    );
    let text = String::from_utf8(response.body).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let feed = document.root_element();
    assert!(feed.has_tag_name((ATOM, "feed")));
    let child = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.children()
            .find(|child| child.has_tag_name((ATOM, name)))
            .and_then(|child| child.text())
            .map(str::to_owned)
    };
    assert_eq!(child(feed, "title").as_deref(), Some("Chart Index: Charts by zoe"));
    assert_eq!(child(feed, "id").as_deref(), Some("https://charts.example/feed.atom?creator=zoe"));
    let entries: Vec<_> = feed.children().filter(|node| node.has_tag_name((ATOM, "entry"))).collect();
    let mut found: Vec<_> = entries.iter().filter_map(|entry| child(*entry, "title")).collect();
    found.sort_unstable();
    assert_eq!(found, ["Artist – One", "Artist – Two"]);
    for entry in entries {
        let (id, updated) = (child(entry, "id").unwrap(), child(entry, "updated").unwrap());
        assert!(id.starts_with("urn:chart-index:chartset:"), "{id}");
        assert!(updated.starts_with("20") && updated.ends_with('Z') && updated.len() == 20, "{updated}");
        let link = entry.children().find(|child| child.has_tag_name((ATOM, "link"))).unwrap();
        assert!(link.attribute("href").unwrap().starts_with("https://charts.example/chartsets/"));
    }
}

#[tokio::test]
async fn malformed_filter_is_400() {
    let site = Site::empty().await;
    assert_eq!(site.get("/feed.atom?keys=9").await.status, 400);
    let empty = site.get("/feed.atom").await;
    assert!(roxmltree::Document::parse(std::str::from_utf8(&empty.body).unwrap()).is_ok());
}

#[tokio::test]
async fn changelog_is_a_feed() {
    let site = Site::public().await;
    let text = String::from_utf8(site.get("/docs/changelog.atom").await.body).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let first = |name: &str| document.descendants().find(|node| node.has_tag_name((ATOM, name)));
    assert!(first("entry").is_some(), "{text}");
    assert_eq!(first("updated").unwrap().text().unwrap().len(), "2026-11-28T00:00:00Z".len());
    let link = first("link").unwrap().attribute("href");
    assert_eq!(link, Some("https://charts.example/docs/changelog.atom"));
}
