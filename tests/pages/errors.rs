//! Errors outside of the API are pages where the client prefers HTML.

use super::*;

#[tokio::test]
async fn form_of_an_error_follows_accept_and_path() {
    let site = Site::empty().await;
    let problem = "application/problem+json";
    for (path, accept, expected) in [
        ("/nowhere", BROWSER.1, HTML),
        ("/nowhere", "*/*", problem),
        ("/nowhere", "application/json", problem),
        ("/go/chartset/0000000000000000", BROWSER.1, HTML),
        ("/go/chartset/0000000000000000", "application/json", problem),
        ("/chartsets/0000000000000000", "text/html", HTML),
        ("/api/nowhere", BROWSER.1, problem),
        ("/api/chartsets/0000000000000000", BROWSER.1, problem),
        ("/?keys=9", BROWSER.1, HTML),
        ("/?keys=9", "application/json", problem),
        ("/shelf?add=x", BROWSER.1, HTML),
        ("/shelf?add=x", "*/*", problem),
    ] {
        let response = site.client.get_with(path, &[("accept", accept)]).await;
        let status = if path.contains('?') { 400 } else { 404 };
        assert_eq!(
            (response.status.as_u16(), response.header("content-type")),
            (status, expected),
            "{path} {accept}"
        );
        assert_eq!(response.header("vary").contains("accept"), !path.starts_with("/api/"), "{path} {accept}");
        assert_eq!(response.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn head_of_an_error_has_the_headers_of_get() {
    let site = Site::empty().await;
    let get = site.get("/nowhere").await;
    let head = site.client.request(reqwest::Method::HEAD, "/nowhere", &[BROWSER]).await;
    assert_eq!((head.status, head.body.len()), (get.status, 0));
    for name in ["content-type", "content-length", "vary", "content-security-policy"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[tokio::test]
async fn page_of_an_error_leads_on() {
    let site = Site::empty().await;
    for (path, heading) in [
        ("/nowhere", "No page is at this address"),
        (&format!("/charts/{}", "0".repeat(64)), "No chart is at this address"),
        ("/chartsets/0000000000000000", "No set is at this address"),
        ("/packs/7", "No pack is at this address"),
    ] {
        let response = site.get(path).await;
        let id = response.header("x-request-id").to_owned();
        let html = String::from_utf8(response.body).unwrap();
        assert_eq!(between(&html, "<h1>", "</h1>"), heading);
        for part in [
            &format!("request <code>{id}</code>"),
            "name=\"query\"",
            "href=\"/\"",
            "href=\"/identify\"",
            "href=\"/problems/",
            "noindex",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}

#[tokio::test]
async fn other_methods_are_405_pages() {
    let site = Site::empty().await;
    for path in ["/", "/chartsets/x", "/about", "/assets/x"] {
        let response = site.client.request(reqwest::Method::POST, path, &[BROWSER]).await;
        assert_eq!((response.status.as_u16(), response.header("allow")), (405, "GET, HEAD"), "{path}");
        assert_eq!(response.header("content-type"), HTML);
    }
}

#[tokio::test]
async fn unknown_assets_are_404() {
    let site = Site::empty().await;
    for path in ["/assets/none.000000000000.css", "/assets/style.css", "/assets/..%2FCargo.toml"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
}
