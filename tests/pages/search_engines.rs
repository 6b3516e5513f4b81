//! What search engines and browsers read of the site: titles, structured data, sitemaps, robots.txt, and how to
//! search it.

use super::*;

const SITE: &str = PUBLIC_URL.1;

async fn text(site: &Site, path: &str) -> String {
    let response = site.get(path).await;
    assert_eq!(
        (response.status.as_u16(), response.header("content-type")),
        (200, "application/xml; charset=utf-8")
    );
    String::from_utf8(response.body).unwrap()
}

/// The texts of the elements with this name.
fn texts(xml: &str, name: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(xml).unwrap();
    let elements = document.descendants().filter(|node| node.tag_name().name() == name);
    elements.filter_map(|node| Some(node.text()?.to_owned())).collect()
}

#[tokio::test]
async fn titles_name_the_artist_and_have_units() {
    let site = Site::of_library().await;
    let chart = links(&site.html("/?q=Two").await, "/charts/")[0].to_owned();
    for (path, title) in [
        ("/", "Charts"),
        (
            "/?keys=4&mainBpmMin=100&mainBpmMax=200&lengthMin=1&creator=zoe",
            "4K charts by zoe, 100–200 BPM, from 0:01 long",
        ),
        (&chart, "Artist – Two [4K Only]"),
        (&format!("/chartsets/{}", site.id_of("Two").await), "Artist – Two"),
    ] {
        let html = site.html(path).await;
        assert_eq!(between(&html, "<title>", "</title>"), format!("{title} – Chart Index"), "{path}");
    }
}

#[tokio::test]
async fn searches_and_empty_pages_are_not_indexed() {
    let site = Site::public().await;
    for (path, is_indexed) in [
        ("/", true),
        ("/?keys=4&sort=title", true),
        ("/?keys=6", true),
        ("/?q=One", false),
        ("/?query=One+-tag:x", false),
        ("/?page=99", false),
    ] {
        let html = site.html(path).await;
        assert_eq!(html.contains("<link rel=\"canonical\""), is_indexed, "{path}");
        assert_eq!(html.contains("<meta name=\"robots\" content=\"noindex\">"), !is_indexed, "{path}");
    }
    let html = Site::empty().await.html("/").await;
    for needs_the_public_url in ["rel=\"canonical\"", "og:url", "rel=\"search\"", "noindex"] {
        assert!(!html.contains(needs_the_public_url), "{needs_the_public_url}: {html}");
    }
}

#[tokio::test]
async fn structured_data_is_json() {
    let site = Site::public().await;
    let chart = links(&site.html("/?q=Two").await, "/charts/")[0].to_owned();
    let set = format!("/chartsets/{}", site.id_of("Two").await);
    for (path, kind) in [("/", "WebSite"), (&chart, "CreativeWork"), (&set, "CreativeWork")] {
        let html = site.html(path).await;
        let data = between(&html, "<script type=\"application/ld+json\">", "</script>");
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!((&data["@type"], &data["url"]), (&kind.into(), &format!("{SITE}{path}").into()));
        if kind == "CreativeWork" {
            assert_eq!(data["about"]["byArtist"]["name"], "Artist");
        }
    }
    assert!(!site.html("/?keys=4").await.contains("ld+json"));
}

#[tokio::test]
async fn sitemap_has_all_charts_and_sets() {
    let site = Site::public().await;
    let parts = texts(&text(&site, "/sitemap.xml").await, "loc");
    assert_eq!(parts[0], format!("{SITE}/sitemaps/pages.xml"));
    let mut pages = Vec::new();
    for part in &parts {
        let xml = text(&site, part.strip_prefix(SITE).unwrap()).await;
        pages.extend(texts(&xml, "loc"));
        assert!(texts(&xml, "lastmod").iter().all(|time| time.len() == 20 && time.ends_with('Z')));
    }
    let count =
        |prefix: &str| pages.iter().filter(|page| page.starts_with(&format!("{SITE}{prefix}"))).count();
    assert_eq!((count("/charts/"), count("/chartsets/"), count("/docs") > 25), (4, 3, true), "{pages:?}");
    for page in pages {
        assert_eq!(site.get(page.strip_prefix(SITE).unwrap()).await.status, 200, "{page}");
    }
    for none in ["/sitemaps/9000.xml", "/sitemaps/00.xml", "/sitemaps/0", "/sitemaps/x.xml"] {
        assert_eq!(site.get(none).await.status, 404, "{none}");
    }
}

#[tokio::test]
async fn crawlers_are_kept_from_choices_and_redirects() {
    let site = Site::public().await;
    let robots = String::from_utf8(site.get("/robots.txt").await.body).unwrap();
    for line in [
        "Disallow: /random",
        "Disallow: /ratings",
        "Disallow: /go/",
        "Disallow: /api/",
        "Sitemap: https://charts.example/sitemap.xml",
    ] {
        assert!(robots.lines().any(|other| other == line), "{line}: {robots}");
    }
}

#[tokio::test]
async fn browsers_can_search_the_site() {
    let site = Site::public().await;
    assert!(site.html("/about").await.contains("href=\"/opensearch.xml\""));
    let xml = text(&site, "/opensearch.xml").await;
    let document = roxmltree::Document::parse(&xml).unwrap();
    let template = document.descendants().find_map(|node| node.attribute("template")).unwrap();
    assert_eq!(template, format!("{SITE}/?query={{searchTerms}}&sort=relevance"));
    let icon = site.get("/favicon.ico").await;
    assert_eq!((icon.status.as_u16(), icon.header("cache-control")), (204, "public, max-age=300"));
    let head = site.client.request(reqwest::Method::HEAD, "/favicon.ico", &[]).await;
    assert_eq!((head.status.as_u16(), head.header("content-length")), (204, ""));
}

#[tokio::test]
async fn replicas_with_other_settings_share_no_pages() {
    let site = Site::new(&library()).await;
    let variables = [("REDIS_URL", site.redis.url()), PUBLIC_URL];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let other = Service::start_with(site.database.url(), &options);
    let set = format!("/chartsets/{}", site.id_of("Two").await);
    for path in ["/", &set, "/feed.atom"] {
        let plain = site.get(path).await.body;
        let public = other.client().get_with(path, &[BROWSER]).await.body;
        let [plain, public] = [plain, public].map(|body| String::from_utf8(body).unwrap().contains(SITE));
        assert_eq!((plain, public), (false, true), "{path}");
    }
}

#[tokio::test]
async fn what_needs_the_public_url_is_missing_without_it() {
    let site = Site::of_library().await;
    for path in ["/sitemap.xml", "/sitemaps/pages.xml", "/sitemaps/0.xml", "/opensearch.xml"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    assert!(!String::from_utf8(site.get("/robots.txt").await.body).unwrap().contains("Sitemap"));
}
