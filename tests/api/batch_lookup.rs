//! `POST /api/charts/lookup` (docs/api.md, "Batch lookup").

use std::io::Write;

use chart_index_tests::PrivatePostgres;
use hyper::Method;
use serde_json::json;

use super::*;

const PATH: &str = "/api/charts/lookup";
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

async fn post(index: &Index, body: &serde_json::Value) -> Response {
    index.client.send(Method::POST, PATH, JSON, body.to_string()).await
}

/// An index with two charts, and their hashes.
async fn two_charts() -> (Index, [String; 2]) {
    let library = Library::new();
    let hashes = [("alpha/12 one/a.osu", 4), ("alpha/13 two/b.osu", 7)].map(|(path, keys)| {
        let spec = ChartSpec { keys, set_id: 12, ..ChartSpec::default() };
        library.osu(path, spec).note_hash()
    });
    (Index::new(library).await, hashes)
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

/// A batch fills the cache entries of single lookups.
#[tokio::test]
async fn removed_chart_is_unknown_to_later_batches() {
    let (index, [first, second]) = two_charts().await;
    let status = async || {
        let response = post(&index, &json!({"hashes": [first, second]})).await.json();
        strings(&response["items"], "status")
    };
    assert_eq!(status().await, ["known", "known"]);
    assert_eq!(status().await, ["known", "known"]);
    index.indexer(&["remove", "chart", &first]);
    let lookup = format!("/api/charts/{first}");
    let is_removed = async || (index.get(&lookup).await.json()["status"] == "unknown").then_some(());
    within(CHANGE_TIMEOUT, is_removed).await;
    assert_eq!(status().await, ["unknown", "known"]);
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
async fn other_methods_are_as_documented() {
    let (index, [known, _]) = two_charts().await;
    for (method, path, status, allow) in [
        (Method::GET, PATH.to_owned(), 405, Some("POST")),
        (Method::HEAD, PATH.to_owned(), 405, Some("POST")),
        (Method::PUT, PATH.to_owned(), 405, Some("POST")),
        (Method::POST, format!("/api/charts/{known}"), 405, Some("GET, HEAD")),
        (Method::POST, "/api/chartsets".to_owned(), 405, Some("GET, HEAD")),
    ] {
        let response = index.client.send(method.clone(), &path, JSON, "{}".to_owned()).await;
        assert_eq!(response.status, status, "{method} {path}");
        let allowed = response.headers.get("allow").map(|value| value.to_str().unwrap());
        assert_eq!(allowed, allow, "{method} {path}");
    }
}

/// A browser may send the request from any origin.
#[tokio::test]
async fn preflight_allows_post_of_json() {
    let (index, _) = two_charts().await;
    for (path, methods) in [(PATH, "POST"), ("/api/chartsets", "GET, HEAD")] {
        let headers = [
            ("origin", "https://client.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let response = index.client.send(Method::OPTIONS, path, &headers, String::new()).await;
        assert_eq!(response.status, 204, "{path}");
        assert_eq!(response.header("access-control-allow-methods"), methods, "{path}");
        assert_eq!(response.header("access-control-allow-headers"), "*", "{path}");
    }
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

/// The group `bulk` has a limit of its own, which counts requests and not hashes.
#[tokio::test]
async fn requests_are_limited_in_a_group_of_their_own() {
    let (index, [known, _]) = two_charts().await;
    let body = json!({"hashes": [known]});
    for _ in 0..24 {
        assert_eq!(post(&index, &body).await.status, 200);
    }
    let refused = post(&index, &body).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("ratelimit-policy"), "\"bulk\";q=24;w=60");
    assert_eq!(index.get(&format!("/api/charts/{known}")).await.status, 200);
}

/// Without PostgreSQL a batch of cached hashes is served, and one with others is 503.
#[tokio::test]
async fn batch_without_postgresql_needs_cached_hashes() {
    let postgres = PrivatePostgres::start();
    let library = Library::new();
    let known = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
    for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
        indexer(postgres.url(), arguments).succeeded();
    }
    let service = Service::start(postgres.url());
    assert_cached(&service, &format!("/api/charts/{known}"), 200).await;
    postgres.kill();
    let client = service.client();
    let post = async |hashes: serde_json::Value| {
        client.send(Method::POST, PATH, JSON, json!({"hashes": hashes}).to_string()).await
    };
    let cached = post(json!([known])).await;
    assert_eq!((cached.status.as_u16(), &cached.json()["items"][0]["status"]), (200, &json!("known")));
    let response = post(json!([known, "0".repeat(64)])).await;
    assert_eq!((response.status.as_u16(), response.header("retry-after")), (503, "5"));
}
