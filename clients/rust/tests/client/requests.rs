//! Requests, their repetition and their cache.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chart_index_client::types::SearchFilters;
use chart_index_client::{ChartIndex, Error, HashFilter, Include, NoteHash};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::server::{USER_AGENT, index, response, serve};

fn hash(byte: u8) -> NoteHash {
    NoteHash::from_bytes([byte; 32])
}

fn items(hashes: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let item = |byte: u8| json!({"chartHash": hash(byte), "status": "unknown", "ttlMs": 300_000});
    json!({"items": hashes.into_iter().map(item).collect::<Vec<_>>()}).to_string().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn refused_requests_are_repeated_after_the_pause() {
    let now = "date: Sun, 06 Nov 1994 08:49:37 GMT; retry-after: Sun, 06 Nov 1994 08:49:39 GMT";
    let (base, server) = serve(vec![
        response("429 Too Many Requests; retry-after: 1", b""),
        response(&format!("503 Service Unavailable; {now}"), b""),
        response("502 Bad Gateway", b"<h1>502</h1>"),
        response("200 OK", b"{\"a\": 1}"),
    ]);
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&pauses);
    let index = ChartIndex::builder(&base, USER_AGENT).on_pause(move |pause| {
        recorded.lock().unwrap().push((pause.status.as_u16(), pause.duration));
    });
    let started = Instant::now();
    assert_eq!(index.build().unwrap().get::<Value>("/api/any").await.unwrap(), json!({"a": 1}));
    let pauses = pauses.lock().unwrap().clone();
    let total: Duration = pauses.iter().map(|(_, duration)| *duration).sum();
    assert!(started.elapsed() >= total, "{:?}", started.elapsed());
    let [(429, first), (503, second), (502, third)] = pauses[..] else { panic!("{pauses:?}") };
    assert_eq!((first, second), (Duration::from_secs(1), Duration::from_secs(2)));
    assert!((4..=6).contains(&third.as_secs()), "{third:?}");
    let requests = server.join().unwrap();
    assert!(requests.iter().all(|request| request.line == "GET /api/any"), "{requests:?}");
    assert_eq!(requests[3].header("user-agent"), Some(USER_AGENT));
}

#[tokio::test]
async fn requests_end_after_too_many_or_too_long_pauses() {
    let problem = br#"{"type": "/problems/rate-limited", "title": "Too many requests", "detail": "later"}"#;
    let refusal = |retry_after: Option<u64>| {
        let header = retry_after.map(|seconds| format!("; retry-after: {seconds}")).unwrap_or_default();
        let head = "429 Too Many Requests; content-type: application/problem+json";
        response(&format!("{head}{header}"), problem)
    };
    for (max_retries, pauses) in [
        (1, vec![Some(1), Some(7)]),
        (0, vec![Some(1)]),
        (9, vec![Some(1), Some(2)]),
        (9, vec![Some(4_000_000_000)]),
        // The second pause is one that the client chooses.
        (9, vec![Some(1), None]),
    ] {
        let asked = pauses.last().copied().flatten().map(Duration::from_secs);
        let refusals = pauses.into_iter().map(refusal).collect();
        let (base, server) = serve(refusals);
        let builder = ChartIndex::builder(&base, USER_AGENT).max_retries(max_retries);
        let index = builder.max_wait(Duration::from_secs(2)).build().unwrap();
        let error = index.get::<Value>("/api/any").await.unwrap_err();
        let problem = error.problem().unwrap();
        assert_eq!((problem.status, &*problem.problem_type), (429, "/problems/rate-limited"));
        assert_eq!((&*problem.detail, problem.retry_after), ("later", asked));
        server.join().unwrap();
    }
}

#[tokio::test]
async fn cached_responses_are_confirmed() {
    let (base, server) = serve(vec![
        response("200 OK; etag: \"1\"; content-encoding: gzip", &gzip(b"[1]")),
        response("304 Not Modified; etag: \"1\"", b""),
        response("200 OK; etag: \"2\"", b"[2]"),
        response("304 Not Modified", b""),
        response("404 Not Found", br#"{"detail": "gone"}"#),
    ]);
    let index = index(&base);
    for expected in [1, 1, 2, 2] {
        assert_eq!(index.get::<Value>("/api/any").await.unwrap(), json!([expected]));
    }
    assert!(index.get::<Value>("/api/any").await.unwrap_err().is_status(404));
    let requests = server.join().unwrap();
    let tags: Vec<_> = requests.iter().map(|request| request.header("if-none-match")).collect();
    assert_eq!(tags, [None, Some("\"1\""), Some("\"1\""), Some("\"2\""), Some("\"2\"")]);
}

#[tokio::test]
async fn slow_batches_are_halved() {
    let timeout = || response("408 Request Timeout", br#"{"detail": "too slow"}"#);
    let (base, server) = serve(vec![
        timeout(),
        response("200 OK; content-encoding: gzip", &gzip(&items([1, 2]))),
        response("200 OK", &items([3, 4])),
        response("200 OK", &items([5])),
        response("200 OK", &items([6, 7])),
    ]);
    let index = index(&format!("{base}/charts/"));
    let found = index.lookup_many(&[1, 2, 3, 4, 5].map(hash), &[Include::Links]).await.unwrap();
    assert_eq!(
        found.iter().map(|item| item.chart_hash.unwrap()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5].map(hash)
    );
    assert_eq!(index.lookup_many(&[6, 7].map(hash), &[Include::Links]).await.unwrap().len(), 2);
    let requests = server.join().unwrap();
    assert!(requests.iter().all(|request| request.line == "POST /charts/api/charts/lookup?include=links"));
    let sizes = requests.iter().map(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        body["hashes"].as_array().unwrap().len()
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [5, 2, 2, 1, 2]);
}

#[tokio::test]
async fn chart_that_is_received_too_slowly_alone_is_an_error() {
    let (base, server) = serve(vec![response("408 Request Timeout", br#"{"detail": "too slow"}"#)]);
    let mut found = Vec::<Value>::new();
    let error = index(&base).lookup_into(&[hash(1)], &[], &mut found).await.unwrap_err();
    assert_eq!(error.to_string(), "408 Request Timeout: too slow");
    server.join().unwrap();
}

#[tokio::test]
async fn searches_read_all_pages() {
    let page = |ids: &[&str], next: Option<&str>| {
        let items: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
        response("200 OK", json!({"items": items, "nextAfter": next}).to_string().as_bytes())
    };
    let (base, server) = serve(vec![page(&["a", "b"], Some("x=")), page(&[], Some("y")), page(&["c"], None)]);
    let filters: SearchFilters = serde_json::from_value(json!({
        "q": "a b&c", "keys": [4, 7], "bpmMin": 120.5, "sort": "mainBpm",
    }))
    .unwrap();
    let (index, mut found) = (index(&base), Vec::new());
    let mut chartsets = index.search_as::<Value>(&filters);
    while let Some(chartset) = chartsets.next().await.unwrap() {
        found.push(chartset["id"].clone());
    }
    assert_eq!(found, ["a", "b", "c"]);
    let lines: Vec<_> = server.join().unwrap().into_iter().map(|request| request.line).collect();
    let path = "GET /api/chartsets?perPage=60&bpmMin=120.5&keys=4%2C7&q=a+b%26c&sort=mainBpm&after";
    assert_eq!(lines, ["start", "x%3D", "y"].map(|after| format!("{path}={after}")));
}

#[tokio::test]
async fn hash_filters_are_read_from_where_they_are() {
    let bytes = HashFilter::build(7, vec![HashFilter::key(hash(1))]).unwrap().to_bytes().unwrap();
    let (base, server) = serve(vec![
        response("302 Found; location: /api/charts/filter/7", b""),
        response("200 OK; etag: \"7\"", &bytes),
        response("302 Found; location: /api/charts/filter/7", b""),
        response("304 Not Modified", b""),
        response("404 Not Found", b""),
    ]);
    let index = index(&base);
    for _ in 0..2 {
        let filter = index.hash_filter().await.unwrap().unwrap();
        assert!(filter.may_contain(hash(1)));
    }
    assert!(index.hash_filter().await.unwrap().is_none());
    let requests = server.join().unwrap();
    assert_eq!(requests[3].line, "GET /api/charts/filter/7");
    assert_eq!(requests[3].header("if-none-match"), Some("\"7\""));
}

#[tokio::test]
async fn responses_of_no_index_are_errors() {
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\n".to_vec();
    for (response, expected) in [
        (response("200 OK", b"<!doctype html>"), "not that of a chart index"),
        (response("200 OK; content-encoding: gzip", b"[]"), "not that of a chart index"),
        (long, "more than 67108864 bytes"),
        (
            response("302 Found; location: file:///etc/passwd", b""),
            "302 Found: redirected to file:///etc/passwd",
        ),
        (response("304 Not Modified", b""), "304 Not Modified"),
        (response("500 Internal Server Error", b"<h1>500</h1>"), "500 Internal Server Error"),
        (response("HTTP", b"")[9..].to_vec(), "no complete response"),
    ] {
        let (base, server) = serve(vec![response]);
        let error = index(&base).get::<Value>("/api/any").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error} instead of {expected}");
        server.join().unwrap();
    }
}

#[tokio::test]
async fn redirects_do_not_go_on_forever() {
    let (base, server) = serve(vec![response("302 Found; location: /api/any", b""); 6]);
    let error = index(&base).get::<Value>("/api/any").await.unwrap_err();
    assert!(error.is_status(302), "{error}");
    server.join().unwrap();
}

#[test]
fn addresses_and_user_agents_are_checked() {
    for (base, user_agent, expected) in [
        ("charts.example", USER_AGENT, "relative URL without a base"),
        ("ftp://charts.example", USER_AGENT, "must begin with http:// or https://"),
        ("https://charts.example/?q=1", USER_AGENT, "must have no query"),
        ("https://charts.example", "", "User-Agent"),
        ("https://charts.example", " ", "User-Agent"),
        ("https://charts.example", "a\nb", "User-Agent"),
    ] {
        let error = ChartIndex::new(base, user_agent).unwrap_err();
        assert!(matches!(error, Error::Base(_) | Error::UserAgent) && error.to_string().contains(expected));
    }
}
