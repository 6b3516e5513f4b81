//! docs/api.md, "Errors": every error response has problem details.

use super::*;
use reqwest::Method;

fn assert_problem(response: &Response, status: u16) {
    assert_eq!(
        (response.status.as_u16(), response.header("content-type")),
        (status, "application/problem+json")
    );
    let problem = response.json();
    assert_eq!(problem["status"], status);
    for field in ["type", "title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
    }
    assert_eq!(response.header("access-control-allow-origin"), "*", "browsers can read it");
}

#[tokio::test]
async fn unknown_paths_are_problems() {
    let index = Index::empty().await;
    for path in [
        "/nowhere",
        "/api",
        "/api/charts",
        "/api/charts/",
        "/api/chartsets/",
        "/go",
        "//",
        "/livez",
        "/metrics",
        "/%FF",
    ] {
        assert_problem(&index.get(path).await, 404);
    }
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let index = Index::empty().await;
    let batch = "/api/charts/lookup";
    for path in [
        "/api/charts/x",
        "/api/charts/x/rox",
        "/api/charts/x/preview",
        "/api/chartsets",
        "/api/chartsets/x",
        "/go/chartset/x",
        batch,
    ] {
        let (other, allowed) =
            if path == batch { (Method::GET, "POST") } else { (Method::POST, "GET, HEAD") };
        for method in [other, Method::PUT, Method::DELETE, Method::PATCH] {
            let response = index.client.request(method, path, &[]).await;
            assert_problem(&response, 405);
            assert_eq!(response.header("allow"), allowed, "{path}");
            assert_eq!(response.header("cache-control"), "no-store");
        }
    }
}
