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
    for (name, value) in
        [("cache-control", "no-store"), ("x-content-type-options", "nosniff"), ("content-encoding", "")]
    {
        assert_eq!(response.header(name), value, "{name}");
    }
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
        "//api/chartsets",
        "/api/chartsets//x",
        "/api/chartsets/x/y",
        "/%FF",
    ] {
        assert_problem(&index.client.get_with(path, &[("accept-encoding", "gzip")]).await, 404);
        for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
            let response = index.client.request(method, path, &[]).await;
            assert_eq!((response.status.as_u16(), response.header("cache-control")), (404, "no-store"));
        }
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
        let purge = Method::from_bytes(b"PURGE").unwrap();
        let others = [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE, purge];
        for method in others.into_iter().chain([other]) {
            let response = index.client.request(method, path, &[("accept-encoding", "gzip")]).await;
            assert_problem(&response, 405);
            let allow: Vec<_> = response.headers.get_all("allow").iter().collect();
            assert_eq!(allow, [allowed], "{path}");
        }
    }
}
