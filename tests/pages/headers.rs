//! Headers of all pages: conditional requests, gzip, the security policy, canonical addresses, and assets.

use std::io::Read as _;

use super::*;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

async fn pages(site: &Site) -> Vec<String> {
    let html = site.html("/?q=One").await;
    let chart = links(&html, "/charts/")[0].to_owned();
    vec![
        "/".into(),
        "/?keys=4&sort=title".into(),
        format!("/chartsets/{}", site.id_of("One").await),
        chart,
        "/about".into(),
        "/identify".into(),
        "/docs".into(),
        "/docs/note-hash".into(),
        "/docs/records".into(),
    ]
}

#[tokio::test]
async fn pages_are_conditional_cacheable_and_compressed() {
    let site = Site::of_library().await;
    let others = ["/feed.atom", "/robots.txt", "/ratings?keys=4"].map(str::to_owned);
    for path in pages(&site).await.into_iter().chain(others) {
        let plain = site.get(&path).await;
        assert_eq!(plain.header("cache-control"), "public, max-age=30", "{path}");
        assert_eq!(plain.header("vary"), "Accept-Encoding", "{path}");
        let tag = plain.header("etag").to_owned();
        let again = site.client.get_with(&path, &[("if-none-match", &tag)]).await;
        assert_eq!(
            (again.status.as_u16(), again.body.len(), again.header("etag")),
            (304, 0, tag.as_str()),
            "{path}"
        );
        if plain.body.len() < 1_024 {
            continue;
        }
        let gzip = site.client.get_with(&path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(gzip.header("content-encoding"), "gzip", "{path}");
        let mut decoded = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut decoded).unwrap();
        assert_eq!(decoded, plain.body, "{path}");
    }
}

#[tokio::test]
async fn all_html_has_the_policy() {
    let site = Site::of_library().await;
    for path in pages(&site).await.iter().map(String::as_str).chain(["/nowhere", "/?keys=9", "/ratings"]) {
        let response = site.get(path).await;
        assert_eq!(response.header("content-security-policy"), POLICY, "{path}");
        assert_eq!(response.header("referrer-policy"), "strict-origin-when-cross-origin", "{path}");
        assert_eq!(response.header("x-content-type-options"), "nosniff", "{path}");
    }
    assert_eq!(site.get("/api/chartsets").await.header("content-security-policy"), "");
}

#[tokio::test]
async fn canonical_address_is_sorted_and_has_no_defaults() {
    let site = Site::public().await;
    for (path, canonical) in [
        ("/", "/"),
        ("/?page=1&sort=updated&utm_source=x", "/"),
        ("/?sort=title&keys=7,4&view=cards", "/?keys=4,7&#38;sort=title"),
        ("/?creator=b%26a&page=1", "/?creator=b%26a"),
    ] {
        let html = site.html(path).await;
        let link = format!("<link rel=\"canonical\" href=\"https://charts.example{canonical}\">");
        assert!(html.contains(&link), "{path}: {html}");
        assert!(
            html.contains(&format!(
                "<meta property=\"og:url\" content=\"https://charts.example{canonical}\">"
            ))
        );
    }
    let html = site.html("/?sort=title&keys=7,4&view=cards").await;
    assert!(
        html.contains("type=\"application/json\" href=\"/api/chartsets?keys=4,7&#38;sort=title\""),
        "{html}"
    );
    assert!(html.contains("href=\"/feed.atom?keys=4,7&#38;sort=title\""), "{html}");
}

#[tokio::test]
async fn assets_are_immutable_and_named_by_their_content() {
    let site = Site::empty().await;
    let html = site.html("/").await;
    let style = links(&html, "/assets/style.")[0].to_owned();
    let script = format!("/assets/page.{}", between(&html, "src=\"/assets/page.", "\""));
    for path in [style.as_str(), &script] {
        let response = site.client.get_with(path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(
            (response.header("content-encoding"), response.header("vary")),
            ("gzip", "Accept-Encoding")
        );
        let plain = site.get(path).await;
        let digest = blake3::hash(&plain.body).to_hex();
        assert!(path.contains(&digest[..12]), "{path}");
    }
    let other = site.get("/assets/style.000000000000.css").await;
    assert_eq!((other.status.as_u16(), other.header("cache-control")), (200, "no-store"));
}

#[tokio::test]
async fn first_visit_is_three_requests_and_40_kb() {
    let site = Site::of_library().await;
    let page = site.client.get_with("/", &[("accept-encoding", "gzip")]).await;
    let html = site.html("/").await;
    let mut bytes = page.body.len();
    let script = format!("/assets/page.{}", between(&html, "src=\"/assets/page.", "\""));
    let loaded: Vec<_> = links(&html, "/assets/").into_iter().map(str::to_owned).chain([script]).collect();
    assert_eq!(loaded.len(), 2, "{loaded:?}");
    for path in &loaded {
        bytes += site.client.get_with(path, &[("accept-encoding", "gzip")]).await.body.len();
    }
    // The page of a full list has 13 KB; this one is short.
    assert!(bytes < 40_000 - 13_000, "{bytes}");
}

#[tokio::test]
async fn about_names_the_contact_and_the_terms() {
    let variables = [
        ("CONTACT", "charts@operator.example"),
        ("DATA_LICENSE", "CC-BY-4.0"),
        ("TERMS_URL", "https://operator.example/terms"),
    ];
    let site = Site::with(&Library::new(), &variables).await;
    let html = site.html("/about").await;
    assert!(html.contains("<a href=\"https://spdx.org/licenses/CC-BY-4.0.html\">CC-BY-4.0</a>"), "{html}");
    assert!(html.contains("<a href=\"https://operator.example/terms\">terms of use</a>"), "{html}");
    assert!(
        html.contains("<a href=\"mailto:charts@operator.example\">charts@operator.example</a>"),
        "{html}"
    );
    let html = Site::empty().await.html("/about").await;
    assert!(html.contains("has not named a contact") && !html.contains("Use of the data"), "{html}");
}
