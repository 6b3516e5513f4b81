//! Names that contain markup, and names that are hard to display.

use super::*;

fn hostile() -> Vec<ChartSpec> {
    let names = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "{{7*7}} {% raw %}",
        "right \u{202e}tfel ot\u{202c}",
        &"x".repeat(300),
        "Z\u{351}\u{36b}\u{343}algo\u{335}\u{321}",
        "🎵🎹 emoji 👩‍👩‍👧",
        "a\u{1}b\u{b}c\u{7f}",
        "]]> &amp; &#0; <!--",
    ];
    let chart = |(number, name): (usize, &&str)| ChartSpec {
        title: (*name).to_owned(),
        artist: (*name).to_owned(),
        creator: (*name).to_owned(),
        difficulty: (*name).to_owned(),
        tags: (*name).to_owned(),
        ..ChartSpec::numbered(u32::try_from(number).unwrap())
    };
    let mut charts: Vec<_> = names.iter().enumerate().map(chart).collect();
    charts.push(ChartSpec { artist: String::new(), ..ChartSpec::numbered(50) });
    charts.push(ChartSpec { bpm: 10_000.0, ..ChartSpec::numbered(51) });
    charts.push(ChartSpec { notes: vec![(0, 0, None)], ..ChartSpec::default() });
    charts
}

fn library() -> Library {
    let library = Library::new();
    for (number, chart) in hostile().into_iter().enumerate() {
        library.osu(&format!("alpha/{} set/a.osu", number + 1), chart);
    }
    library
}

async fn site() -> Site {
    static SITE: Shared<Instance> = Shared::empty();
    Site::shared(&SITE, library, &[]).await
}

fn assert_harmless(path: &str, html: &str) {
    let lower = html.to_lowercase();
    for markup in ["<script>", "<img", "onerror=alert(1)>", "<!--", "{%"] {
        let is_own = markup == "{%" && html.contains("{% raw %}");
        assert!(is_own || !lower.contains(markup), "{path}: {markup}");
    }
    let data = lower.matches("<script type=\"application/ld+json\">").count();
    assert_eq!(lower.matches("<script").count(), 1 + data, "{path}: only that of the page");
    assert!(!html.contains(">49<") && !html.contains(">49 "), "{path}: a template in a name is text");
    assert!(!html.chars().any(|c| c.is_control() && c != '\n'), "{path}: a control character");
}

#[tokio::test]
async fn names_are_text_on_every_page() {
    let site = site().await;
    let list = site.html("/?perPage=60").await;
    assert_harmless("/", &list);
    assert_eq!(titles(&list).len(), 12);
    assert!(list.contains("<b>10,000</b> BPM") && list.contains("Unknown artist"), "{list}");
    let paths = [links(&list, "/chartsets/"), links(&list, "/charts/")].concat();
    assert!(paths.len() >= 24, "{paths:?}");
    for path in paths {
        assert_harmless(path, &site.html(path).await);
    }
}

/// Each name is in an element of its own direction.
#[tokio::test]
async fn names_are_isolated() {
    let html = site().await.html("/?perPage=60").await;
    let name = "right \u{202e}tfel ot\u{202c}";
    assert_eq!(html.matches(name).count(), html.matches(&format!("<bdi>{name}</bdi>")).count(), "{html}");
}

#[tokio::test]
async fn query_is_text() {
    let site = site().await;
    for query in [
        "q=%3Cscript%3Ealert(1)%3C/script%3E",
        "q=%22%3E%3Cimg%20onerror=alert(1)%3E",
        "creator=%7B%7B7*7%7D%7D",
        "q=%E2%80%AE",
    ] {
        assert_harmless(query, &site.html(&format!("/?{query}")).await);
    }
    let malformed = site.get("/?bpmMin=%22%3E%3Cscript%3E&sort=%3Cb%3E&q=%FF").await;
    assert_eq!(malformed.status, 400);
    assert_harmless("400", &String::from_utf8(malformed.body).unwrap());
}

#[tokio::test]
async fn links_of_creators_and_tags_find_their_sets() {
    let site = site().await;
    let list = site.html("/?perPage=60").await;
    let pages = links(&list, "/creators/");
    assert!(pages.len() > 5, "{list}");
    for href in pages {
        let page = site.html(href).await;
        assert!(!links(&page, "/charts/").is_empty(), "{href}");
        assert_harmless(href, &page);
    }
}

#[tokio::test]
async fn feed_is_valid_xml() {
    let site = site().await;
    let feed = site.get("/feed.atom").await;
    let text = String::from_utf8(feed.body).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let entries = document.descendants().filter(|node| node.has_tag_name("entry")).count();
    assert_eq!(entries, 12, "{text}");
}
