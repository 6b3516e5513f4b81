//! The number of series does not depend on what clients send.

use chart_index_tests::{Client, Random};
use reqwest::Method;

use super::*;

/// Maximum series of a replica.
const MAX_SERIES: usize = 3_000;

#[tokio::test]
async fn random_requests_make_no_new_label_sets() {
    assert_closed_label_sets(4_000).await;
}

#[tokio::test]
#[ignore = "takes a minute: make test-full"]
async fn long_random_requests_make_no_new_label_sets() {
    assert_closed_label_sets(100_000).await;
}

async fn assert_closed_label_sets(requests: usize) {
    let index = Index::new().await;
    let service = index.serve(&[
        ("TRUSTED_PROXIES", "127.0.0.1"),
        ("RATE_LIMIT_OTHER", "50"),
        ("RATE_LIMIT_LIST", "50"),
    ]);
    let (client, mut random) = (service.client(), Random::new(12));
    for _ in 0..requests {
        let (method, path, headers) = random_request(&mut random, &index.chart);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Only requests that the client or the server rejects as malformed fail.
        let _ = client.try_request(method, &path, &headers).await;
    }
    let text = metrics(&service.private_client()).await;
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    println!("{series} series after {requests} random requests");
    assert!(series < MAX_SERIES, "{series} series:\n{text}");
    assert!(text.contains("http_request_method=\"_OTHER\""), "{text}");
}

/// A method, path, and headers. About half of the paths have a route.
fn random_request(random: &mut Random, chart: &str) -> (Method, String, Vec<(&'static str, String)>) {
    let word = format!("{:x}", random.next());
    let methods = ["GET", "HEAD", "OPTIONS", "POST", "DELETE", "TRACE", &word.to_uppercase()];
    let method = *random.pick(&methods);
    let paths = [
        chart.to_owned(),
        format!("{chart}/rox"),
        format!("{chart}/preview"),
        format!("/api/charts/{word}"),
        format!("/api/chartsets?q={word}&page={word}"),
        "/api/chartsets".to_owned(),
        format!("/api/chartsets/{word}"),
        format!("/api/random?q={word}"),
        format!("/go/chartset/{word}"),
        format!("/go/chart/{word}"),
        format!("/{word}/{word}"),
    ];
    let headers = vec![
        ("host", if random.one_in(4) { format!("{word} {word}") } else { word.clone() }),
        ("traceparent", format!("00-{word:0>32}-{word:0>16}-01")),
        ("x-forwarded-for", format!("10.0.0.{}", random.below(200))),
        ("user-agent", word.clone()),
    ];
    (Method::from_bytes(method.as_bytes()).expect("a token"), random.pick(&paths).clone(), headers)
}

async fn metrics(client: &Client) -> String {
    let response = client.get("/metrics").await;
    assert_eq!(response.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(response.body).expect("UTF-8")
}
