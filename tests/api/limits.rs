//! Decisions, "Limits".

use super::*;
use reqwest::Method;

/// Serves an empty index with small limits, counted in the Redis of the test run, behind a trusted proxy: each test
/// has clients of its own by their forwarded addresses.
async fn limited_index(replicas: usize) -> (TestDatabase, Vec<Service>) {
    let database = TestDatabase::create().await;
    assert_eq!(indexer(database.url(), &["migrate"]).code, Some(0));
    let redis_url = std::env::var("TEST_REDIS_URL").expect("run the tests with `make test`");
    let variables = [
        ("REDIS_URL", redis_url.as_str()),
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
        ("RATE_LIMIT_LOOKUP", "5"),
        ("RATE_LIMIT_ROX", "4"),
        ("RATE_LIMIT_LIST", "3"),
        ("RATE_LIMIT_DETAIL", "2"),
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

/// An address that no other test and no other run has.
fn client_address(number: u32) -> String {
    let [_, a, b, c] = (std::process::id() * 16 + number).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// "Groups `lookup`, `rox`, `list` as in `api.md`, and a fourth, `detail`, for the detail and the redirect. Each has its
/// own limit"; "429 carries `Retry-After` in whole seconds, rounded up, at least 1 … `RateLimit-Policy` and
/// `RateLimit`. `Cache-Control: no-store`."
#[tokio::test]
async fn each_group_has_its_own_limit_across_all_replicas() {
    let (_database, services) = limited_index(3).await;
    let address = client_address(1);
    for (group, limit) in [("lookup", 5), ("rox", 4), ("list", 3), ("detail", 2)] {
        let mut answers = Vec::new();
        for number in 0..limit + 2 {
            let client = services[number % services.len()].client();
            answers.push(client.get_with(&path_of(group), &[("x-forwarded-for", &address)]).await);
        }
        let refused = answers.split_off(limit);
        assert!(
            answers.iter().all(|answer| answer.status != 429),
            "{group}: never a refusal below the limit"
        );
        for answer in refused {
            assert_eq!(
                (answer.status.as_u16(), answer.header("content-type")),
                (429, "application/problem+json")
            );
            let seconds: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=60).contains(&seconds), "{seconds}");
            assert_eq!(answer.header("ratelimit-policy"), format!("\"{group}\";q={limit};w=60"));
            assert_eq!(answer.header("ratelimit"), format!("\"{group}\";r=0;t={seconds}"));
            assert_eq!(answer.header("cache-control"), "no-store");
            assert_eq!(answer.header("access-control-allow-origin"), "*", "a browser can read a 429");
        }
    }
    let redirect = format!("/go/chartset/{}", "0".repeat(16));
    let answer = services[0].client().get_with(&redirect, &[("x-forwarded-for", &address)]).await;
    assert_eq!(answer.status, 429, "the redirect counts with the detail");
}

/// Decisions, "Limits": "`other` for what no route answers".
#[tokio::test]
async fn what_no_endpoint_answers_has_a_limit_of_its_own() {
    let (_database, services) = limited_index(2).await;
    let address = client_address(5);
    let forwarded = [("x-forwarded-for", address.as_str())];
    let long = format!("/api/chartsets?q={}", "x".repeat(9_000));
    let asked = [
        (Method::GET, "/nowhere", 404),
        (Method::HEAD, "/api", 404),
        (Method::POST, "/api/chartsets", 405),
        (Method::GET, long.as_str(), 414),
    ];
    for (number, (method, path, status)) in asked.iter().enumerate() {
        let client = services[number % 2].client();
        assert_eq!(client.request(method.clone(), path, &forwarded).await.status, *status, "{path}");
    }
    for (method, path, _) in asked {
        let refused = services[0].client().request(method.clone(), path, &forwarded).await;
        assert_eq!((refused.status.as_u16(), refused.header("cache-control")), (429, "no-store"), "{path}");
        assert_eq!(refused.header("ratelimit-policy"), "\"other\";q=4;w=60");
        assert_ne!(refused.header("retry-after"), "");
    }
    assert_eq!(services[0].client().get_with("/api/chartsets", &forwarded).await.status, 200);
}

/// Every request counts, whatever it is answered with.
#[tokio::test]
async fn errors_heads_and_304s_count() {
    let (_database, services) = limited_index(2).await;
    for (number, method, path, headers, status) in [
        (6, Method::GET, "/api/chartsets?page=x", vec![], 400),
        (7, Method::HEAD, "/api/chartsets", vec![], 200),
        (8, Method::GET, "/api/chartsets", vec![("if-none-match", "*")], 304),
    ] {
        let address = client_address(number);
        let headers = [&[("x-forwarded-for", address.as_str())], headers.as_slice()].concat();
        for asked in 0..3 {
            let client = services[asked % 2].client();
            assert_eq!(client.request(method.clone(), path, &headers).await.status, status, "{path}");
        }
        let refused = services[0].client().request(method, path, &headers).await;
        assert_eq!(refused.status, 429, "{path} {headers:?}");
    }
}

/// Decisions, "Limits": "An IPv6 /48 as a whole has 16 times the limit", across all replicas.
#[tokio::test]
async fn an_ipv6_network_has_16_times_the_limit() {
    let (_database, services) = limited_index(2).await;
    // A network that no other run has.
    let [a, b, c, d] = std::process::id().to_be_bytes();
    let network = format!("2001:{a:02x}{b:02x}:{c:02x}{d:02x}");
    let ask = async |number: usize| {
        let address = format!("{network}:{number:x}::1");
        services[number % 2].client().get_with("/api/chartsets", &[("x-forwarded-for", &address)]).await
    };
    for number in 0..16 {
        for _ in 0..3 {
            assert_eq!(ask(number).await.status, 200, "never a refusal below the limit");
        }
    }
    for number in [16, 17] {
        let refused = ask(number).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("ratelimit-policy"), "\"list-network\";q=48;w=60");
        assert_ne!(refused.header("retry-after"), "");
    }
}

/// "only where the peer is in `TRUSTED_PROXIES` (CIDRs), the right-most untrusted hop of `X-Forwarded-For`"
#[tokio::test]
async fn a_client_is_the_right_most_untrusted_hop() {
    let (_database, services) = limited_index(1).await;
    let client = services[0].client();
    let (one, other) = (client_address(2), client_address(3));
    for number in 0..4 {
        let spoofed = format!("192.0.2.{number}, {one}, 127.0.0.9");
        let answer = client.get_with("/api/chartsets", &[("x-forwarded-for", &spoofed)]).await;
        assert_eq!(answer.status == 429, number == 3, "what the client itself wrote does not count");
    }
    assert_eq!(client.get_with("/api/chartsets", &[("x-forwarded-for", &other)]).await.status, 200);
}

/// Without trusted proxies the header is nobody's word.
#[tokio::test]
async fn a_forwarded_address_from_anybody_is_ignored() {
    let database = TestDatabase::create().await;
    assert_eq!(indexer(database.url(), &["migrate"]).code, Some(0));
    let options = ServiceOptions { variables: &[("RATE_LIMIT_LIST", "3")], ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    for number in 0..4 {
        let answer = service
            .client()
            .get_with("/api/chartsets", &[("x-forwarded-for", &client_address(number))])
            .await;
        assert_eq!(answer.status == 429, number == 3);
    }
}

/// "Preflights, health and metrics are not limited."
#[tokio::test]
async fn preflights_and_health_are_not_limited() {
    let (_database, services) = limited_index(1).await;
    let address = client_address(4);
    let asked = [
        ("origin", "https://page.example"),
        ("access-control-request-method", "GET"),
        ("x-forwarded-for", address.as_str()),
    ];
    for _ in 0..10 {
        assert!(
            services[0].client().request(Method::OPTIONS, "/api/chartsets", &asked).await.status.is_success()
        );
        assert_eq!(services[0].private_client().get("/livez").await.status, 200);
    }
    assert_eq!(services[0].client().get_with("/api/chartsets", &asked[2..]).await.status, 200);
}

/// "With Redis away, each replica limits on its own."
#[tokio::test]
async fn without_redis_each_replica_limits_on_its_own() {
    let database = TestDatabase::create().await;
    assert_eq!(indexer(database.url(), &["migrate"]).code, Some(0));
    let variables = [("REDIS_URL", "redis://127.0.0.1:1"), ("RATE_LIMIT_LIST", "3")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    for service in
        [Service::start_with(database.url(), &options), Service::start_with(database.url(), &options)]
    {
        for number in 0..4 {
            let answer = service.client().get("/api/chartsets").await;
            assert_eq!(answer.status == 429, number == 3);
        }
    }
}
