//! `POST /api/charts/lookup` (docs/api.md, "Batch lookup").

use std::io::Write;

use hyper::Method;
use serde_json::json;

use super::*;

const PATH: &str = "/api/charts/lookup";
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

async fn post(index: &Index, body: &serde_json::Value) -> Response {
    index.client.look_up("", body).await
}

fn charts() -> [ChartSpec; 2] {
    [4, 7].map(|keys| ChartSpec { keys, set_id: 12, ..ChartSpec::default() })
}

fn library() -> Library {
    let library = Library::new();
    for (path, chart) in ["alpha/12 one/a.osu", "alpha/13 two/b.osu"].into_iter().zip(charts()) {
        library.osu(path, chart);
    }
    library
}

/// An index with two charts, which tests only read, and their hashes.
async fn two_charts() -> (Index, [String; 2]) {
    static TWO_CHARTS: Shared<Instance> = Shared::empty();
    (Index::shared(&TWO_CHARTS, library).await, charts().map(|chart| chart.note_hash()))
}

/// The items are the bodies of the single lookups, in the order of the request.
#[tokio::test]
async fn items_equal_single_lookups_in_order() {
    let (index, [first, second]) = two_charts().await;
    let unknown = "0".repeat(64);
    let asked = [&second, &unknown, &first, &second];
    let mut expected = Vec::new();
    for hash in asked {
        expected.push(index.get(&format!("/api/charts/{hash}")).await.json());
    }
    let response = post(&index, &json!({"hashes": asked, "ignored": true})).await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "application/json"));
    assert_eq!(response.header("cache-control"), "no-store");
    assert!(!response.headers.contains_key("etag"));
    assert_eq!(response.json(), json!({"items": expected}));
}

#[tokio::test]
async fn invalid_requests_are_4xx() {
    let (index, [known, _]) = two_charts().await;
    let hashes = |number: usize| json!({"hashes": vec![&known; number]}).to_string();
    let bad_hash = |index: usize| {
        let mut hashes = vec![known.clone(); 3];
        hashes[index].make_ascii_uppercase();
        json!({"hashes": hashes}).to_string()
    };
    let large = format!("{{\"hashes\":[]{}}}", " ".repeat(128 * 1024));
    for (body, status, kind, parameter) in [
        (hashes(1), 200, None, None),
        (hashes(1_000), 200, None, None),
        (hashes(1_001), 400, Some("bad-parameter"), Some("hashes")),
        (hashes(0), 400, Some("bad-parameter"), Some("hashes")),
        (bad_hash(0), 400, Some("malformed-hash"), Some("hashes[0]")),
        (bad_hash(2), 400, Some("malformed-hash"), Some("hashes[2]")),
        ("{\"hashes\":[1]}".to_owned(), 400, Some("malformed-body"), None),
        ("{\"hash\":[]}".to_owned(), 400, Some("bad-parameter"), Some("hashes")),
        ("{\"charts\":[1]}".to_owned(), 400, Some("malformed-body"), None),
        ("{\"charts\":[[\"x\"]]}".to_owned(), 400, Some("malformed-body"), None),
        ("[]".to_owned(), 400, Some("malformed-body"), None),
        ("{\"hashes\":[".to_owned(), 400, Some("malformed-body"), None),
        (String::new(), 400, Some("malformed-body"), None),
        (large, 413, Some("content-too-large"), None),
    ] {
        let name = body.get(..80).unwrap_or(&body).to_owned();
        let response = index.client.send(Method::POST, PATH, JSON, body).await;
        assert_eq!(response.status, status, "{name}");
        let Some(kind) = kind else { continue };
        assert_eq!(response.header("content-type"), "application/problem+json", "{name}");
        let problem = response.json();
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{name}");
        assert_eq!(problem.get("parameter").and_then(|name| name.as_str()), parameter, "{name}");
    }
    // A parameter of single lookups only.
    let response = index.client.send(Method::POST, &format!("{PATH}?variant=x"), JSON, hashes(1)).await;
    assert_eq!(response.status, 200);
    for headers in [
        &[("content-type", "text/plain")][..],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "application/json"), ("content-encoding", "br")],
    ] {
        let response = index.client.send(Method::POST, PATH, headers, hashes(1)).await;
        assert_eq!((response.status.as_u16(), response.header("accept")), (415, "application/json"));
        assert_eq!(response.header("accept-encoding"), "gzip");
    }
}

/// A body in gzip has the same limits as a plain one.
#[tokio::test]
async fn body_may_be_compressed() {
    let (index, [known, _]) = two_charts().await;
    let headers = [JSON[0], ("content-encoding", "gzip")];
    let send = async |body: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body.as_bytes()).unwrap();
        index.client.send(Method::POST, PATH, &headers, encoder.finish().unwrap()).await
    };
    let body = json!({"hashes": vec![&known; 1_000]}).to_string();
    let plain = index.client.send(Method::POST, PATH, JSON, body.clone()).await;
    let gzip = send(&body).await;
    assert_eq!((gzip.status.as_u16(), &gzip.body), (200, &plain.body));
    assert_eq!(send(&format!("{{\"hashes\":[]{}}}", " ".repeat(128 * 1024))).await.status, 413);
    let malformed = index.client.send(Method::POST, PATH, &headers, body).await;
    assert_eq!(
        (malformed.status.as_u16(), &malformed.json()["type"]),
        (400, &json!("/problems/malformed-body"))
    );
}

#[tokio::test]
async fn large_responses_are_compressed() {
    let (index, [known, _]) = two_charts().await;
    let body = json!({"hashes": vec![&known; 100]}).to_string();
    let plain = index.client.send(Method::POST, PATH, JSON, body.clone()).await;
    let headers = [JSON[0], ("accept-encoding", "gzip")];
    let gzip = index.client.send(Method::POST, PATH, &headers, body).await;
    assert_eq!((plain.header("vary"), gzip.header("vary")), ("Accept-Encoding", "Accept-Encoding"));
    assert_eq!(gzip.header("content-encoding"), "gzip");
    assert!(gzip.body.len() < plain.body.len() / 10, "{} of {}", gzip.body.len(), plain.body.len());
}
