//! Decisions, "Errors": "Every error of every layer has this form".

use super::*;
use reqwest::Method;

fn assert_problem(answer: &Response, status: u16) {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, "application/problem+json"));
    let problem = answer.json();
    assert_eq!(problem["status"], status);
    for field in ["type", "title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
    }
    assert_eq!(answer.header("access-control-allow-origin"), "*", "a browser can read it");
}

#[tokio::test]
async fn unknown_paths_are_problems() {
    let index = Index::over(Library::new()).await;
    for path in [
        "/",
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

/// "methods (405 with `Allow`)"
#[tokio::test]
async fn other_methods_are_not_allowed() {
    let index = Index::over(Library::new()).await;
    for path in ["/api/charts/x", "/api/charts/x/rox", "/api/chartsets", "/api/chartsets/x", "/go/chartset/x"]
    {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let answer = index.client.request(method, path, &[]).await;
            assert_problem(&answer, 405);
            let mut allowed: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed, ["GET", "HEAD"], "{path}");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
}

/// A query string longer than any reader needs gets an answer, not a hang.
#[tokio::test]
async fn an_overlong_address_is_refused() {
    let index = Index::over(Library::new()).await;
    let answer = index.get(&format!("/api/chartsets?q={}", "x".repeat(20_000))).await;
    assert!([400, 414, 431].contains(&answer.status.as_u16()), "{}", answer.status);
}
