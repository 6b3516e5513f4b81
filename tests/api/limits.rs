//! Rate limits (docs/api.md, "Rate limits").

use super::*;
use reqwest::Method;

/// Starts replicas with an empty database and small limits, counted in the Redis of the test run. The tests are
/// a trusted proxy, and each has its own client addresses.
async fn start_replicas(replicas: usize) -> (TestDatabase, Vec<Service>) {
    let database = TestDatabase::migrated().await;
    let redis_url = std::env::var("TEST_REDIS_URL").expect("run the tests with `make test`");
    let variables = [
        ("REDIS_URL", redis_url.as_str()),
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
        ("RATE_LIMIT_LOOKUP", "5"),
        ("RATE_LIMIT_ROX", "4"),
        ("RATE_LIMIT_LIST", "3"),
        ("RATE_LIMIT_DETAIL", "2"),
        ("RATE_LIMIT_PREVIEW", "2"),
        ("RATE_LIMIT_BULK", "2"),
        ("RATE_LIMIT_FEED", "2"),
        ("RATE_LIMIT_PAGE", "2"),
        ("RATE_LIMIT_OTHER", "4"),
    ];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let services = (0..replicas).map(|_| Service::start_with(database.url(), &options)).collect();
    (database, services)
}

fn path_of(group: &str) -> String {
    match group {
        "lookup" => format!("/api/charts/{}", "0".repeat(64)),
        "rox" => format!("/api/charts/{}/rox", "0".repeat(64)),
        "list" => "/api/chartsets".into(),
        _ => format!("/api/chartsets/{}", "0".repeat(16)),
    }
}

/// A client address that no other test and no other run uses.
fn client_address(number: u32) -> String {
    let [_, a, b, c] = (std::process::id() * 256 + number).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// The groups `lookup`, `rox`, `list` and `detail`, which includes the redirect, have separate limits. A 429
/// has `Retry-After`, `RateLimit-Policy`, `RateLimit` and `Cache-Control: no-store`.
#[tokio::test]
async fn each_group_has_one_limit_across_all_replicas() {
    let (_database, services) = start_replicas(3).await;
    let address = client_address(1);
    for (group, limit) in [("lookup", 5), ("rox", 4), ("list", 3), ("detail", 2)] {
        let mut responses = Vec::new();
        for number in 0..limit + 2 {
            let client = services[number % services.len()].client();
            responses.push(client.get_with(&path_of(group), &[("x-forwarded-for", &address)]).await);
        }
        let refused = responses.split_off(limit);
        assert!(
            responses.iter().all(|response| response.status != 429),
            "{group}: no refusal below the limit"
        );
        for response in refused {
            assert_eq!(
                (response.status.as_u16(), response.header("content-type")),
                (429, "application/problem+json")
            );
            let seconds: u64 = response.header("retry-after").parse().unwrap();
            assert!((1..=60).contains(&seconds), "{seconds}");
            assert_eq!(response.header("ratelimit-policy"), format!("\"{group}\";q={limit};w=60"));
            assert_eq!(response.header("ratelimit"), format!("\"{group}\";r=0;t={seconds}"));
            assert_eq!(response.header("cache-control"), "no-store");
            assert_eq!(response.header("access-control-allow-origin"), "*", "browsers can read a 429");
        }
    }
    let redirect = format!("/go/chartset/{}", "0".repeat(16));
    let response = services[0].client().get_with(&redirect, &[("x-forwarded-for", &address)]).await;
    assert_eq!(response.status, 429, "the redirect counts as a detail");
}

/// What no shared cache may keep says what is left, errors included, on every replica.
#[tokio::test]
async fn uncached_responses_of_extensions_have_the_budget() {
    let (_database, services) = start_replicas(2).await;
    let address = client_address(200);
    let headers = [("x-forwarded-for", address.as_str()), ("content-type", "application/json")];
    let send = async |replica: usize, body: &str| {
        let client = services[replica].client();
        client.send(Method::POST, "/api/charts/lookup", &headers, body.to_owned()).await
    };
    let known = format!(r#"{{"hashes":["{}"]}}"#, "0".repeat(64));
    for (replica, body, status, remaining) in [(0, known.as_str(), 200, 1), (1, "{", 400, 0)] {
        let response = send(replica, body).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("ratelimit-policy"), "\"bulk\";q=2;w=60");
        let state = response.header("ratelimit").strip_prefix(&format!("\"bulk\";r={remaining};t="));
        let seconds: u64 = state.unwrap_or_else(|| panic!("{response:?}")).parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    assert!(send(0, &known).await.header("ratelimit").starts_with("\"bulk\";r=0;t="));
    // Without an export this is an error, and so uncached.
    let other = client_address(201);
    let latest = services[0].client().get_with("/api/exports/latest", &[("x-forwarded-for", &other)]).await;
    assert_eq!((latest.status.as_u16(), latest.header("ratelimit-policy")), (404, "\"bulk\";q=2;w=60"));
    for group in ["lookup", "rox", "list", "detail"] {
        let response = services[0].client().get_with(&path_of(group), &[("x-forwarded-for", &other)]).await;
        assert_eq!(response.header("ratelimit"), "", "{group}");
    }
}

/// Requests without an endpoint count against the group `other`.
#[tokio::test]
async fn requests_without_an_endpoint_have_their_own_limit() {
    let (_database, services) = start_replicas(2).await;
    let address = client_address(5);
    let forwarded = [("x-forwarded-for", address.as_str())];
    let long = format!("/api/chartsets?q={}", "x".repeat(9_000));
    let requests = [
        (Method::GET, "/nowhere", 404),
        (Method::HEAD, "/api", 404),
        (Method::POST, "/api/chartsets", 405),
        (Method::GET, long.as_str(), 414),
    ];
    for (number, (method, path, status)) in requests.iter().enumerate() {
        let client = services[number % 2].client();
        assert_eq!(client.request(method.clone(), path, &forwarded).await.status, *status, "{path}");
    }
    for (method, path, _) in requests {
        let refused = services[0].client().request(method.clone(), path, &forwarded).await;
        assert_eq!((refused.status.as_u16(), refused.header("cache-control")), (429, "no-store"), "{path}");
        assert_eq!(refused.header("ratelimit-policy"), "\"other\";q=4;w=60");
        assert_ne!(refused.header("retry-after"), "");
    }
    assert_eq!(services[0].client().get_with("/api/chartsets", &forwarded).await.status, 200);
}

/// Every request counts, whatever its response.
#[tokio::test]
async fn errors_head_requests_and_304s_count() {
    let (_database, services) = start_replicas(2).await;
    for (number, method, path, headers, status) in [
        (6, Method::GET, "/api/chartsets?page=x", vec![], 400),
        (7, Method::HEAD, "/api/chartsets", vec![], 200),
        (8, Method::GET, "/api/chartsets", vec![("if-none-match", "*")], 304),
    ] {
        let address = client_address(number);
        let headers = [&[("x-forwarded-for", address.as_str())], headers.as_slice()].concat();
        for replica in 0..3 {
            let client = services[replica % 2].client();
            assert_eq!(client.request(method.clone(), path, &headers).await.status, status, "{path}");
        }
        let refused = services[0].client().request(method, path, &headers).await;
        assert_eq!(refused.status, 429, "{path} {headers:?}");
    }
}

/// Each route of the API and of the pages, with valid and with malformed parameters. Only assets have no limit.
#[tokio::test]
async fn every_route_is_limited() {
    let (_database, services) = start_replicas(1).await;
    let client = services[0].client();
    let document: serde_json::Value = client.get("/docs/openapi.json").await.json();
    let templates = document["paths"].as_object().unwrap().keys().map(String::as_str);
    let queries = [
        "/?bpmMin=x",
        "/?q=a&keys=",
        "/?q=00000000",
        "/random?bpmMin=x",
        "/ratings?bpmMin=x",
        "/feed.atom?bpmMin=x",
        "/api/chartsets?bpmMin=x",
        "/api/changes?after=x",
    ];
    let mut number = 9;
    for template in templates.chain(PAGES).chain(queries) {
        for parameter in ["x", &"0".repeat(16), &"0".repeat(64), &"A".repeat(64), "%FF"] {
            number += 1;
            let path = match (template.find('{'), template.find('}')) {
                (Some(start), Some(end)) => [&template[..start], parameter, &template[end + 1..]].concat(),
                _ => template.to_owned(),
            };
            let address = client_address(number);
            let headers = [("x-forwarded-for", address.as_str())];
            let mut statuses = Vec::new();
            while statuses.len() < 6 && statuses.last() != Some(&429) {
                statuses.push(client.get_with(&path, &headers).await.status.as_u16());
            }
            assert_eq!(statuses.last(), Some(&429), "{path}: {statuses:?}");
            assert!(statuses.len() > 2, "{path}: {statuses:?}");
            if !template.contains('{') {
                break;
            }
        }
    }
}

/// An IPv6 /48 as a whole has 16 times the limit, across all replicas.
#[tokio::test]
async fn ipv6_network_has_16_times_the_limit() {
    let (_database, services) = start_replicas(2).await;
    // A network that no other run uses.
    let [a, b, c, d] = std::process::id().to_be_bytes();
    let network = format!("2001:{a:02x}{b:02x}:{c:02x}{d:02x}");
    let get = async |number: usize| {
        let address = format!("{network}:{number:x}::1");
        services[number % 2].client().get_with("/api/chartsets", &[("x-forwarded-for", &address)]).await
    };
    for number in 0..16 {
        for _ in 0..3 {
            assert_eq!(get(number).await.status, 200, "no refusal below the limit");
        }
    }
    for number in [16, 17] {
        let refused = get(number).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("ratelimit-policy"), "\"list-network\";q=48;w=60");
        assert_ne!(refused.header("retry-after"), "");
    }
}

/// Behind trusted proxies the client is the right-most untrusted hop of `X-Forwarded-For`.
#[tokio::test]
async fn client_is_the_right_most_untrusted_hop() {
    let (_database, services) = start_replicas(1).await;
    let client = services[0].client();
    let (one, other) = (client_address(2), client_address(3));
    for number in 0..4 {
        let spoofed = format!("192.0.2.{number}, {one}, 127.0.0.9");
        let response = client.get_with("/api/chartsets", &[("x-forwarded-for", &spoofed)]).await;
        assert_eq!(response.status == 429, number == 3, "hops that the client sent do not count");
    }
    assert_eq!(client.get_with("/api/chartsets", &[("x-forwarded-for", &other)]).await.status, 200);
}

/// Without trusted proxies `X-Forwarded-For` is ignored.
#[tokio::test]
async fn forwarded_address_of_an_untrusted_peer_is_ignored() {
    let database = TestDatabase::migrated().await;
    let options = ServiceOptions { variables: &[("RATE_LIMIT_LIST", "3")], ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    for number in 0..4 {
        let response = service
            .client()
            .get_with("/api/chartsets", &[("x-forwarded-for", &client_address(number))])
            .await;
        assert_eq!(response.status == 429, number == 3);
    }
}

/// Preflights and health endpoints are not limited.
#[tokio::test]
async fn preflights_and_health_are_not_limited() {
    let (_database, services) = start_replicas(1).await;
    let address = client_address(4);
    let headers = [
        ("origin", "https://page.example"),
        ("access-control-request-method", "GET"),
        ("x-forwarded-for", address.as_str()),
    ];
    for _ in 0..10 {
        assert!(
            services[0]
                .client()
                .request(Method::OPTIONS, "/api/chartsets", &headers)
                .await
                .status
                .is_success()
        );
        assert_eq!(services[0].private_client().get("/livez").await.status, 200);
    }
    assert_eq!(services[0].client().get_with("/api/chartsets", &headers[2..]).await.status, 200);
}

/// While Redis is unavailable, each replica limits on its own.
#[tokio::test]
async fn without_redis_each_replica_limits_on_its_own() {
    let database = TestDatabase::migrated().await;
    let variables = [("REDIS_URL", "redis://127.0.0.1:1"), ("RATE_LIMIT_LIST", "3")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    for service in
        [Service::start_with(database.url(), &options), Service::start_with(database.url(), &options)]
    {
        for number in 0..4 {
            let response = service.client().get("/api/chartsets").await;
            assert_eq!(response.status == 429, number == 3);
        }
    }
}
