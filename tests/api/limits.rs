//! Rate limits (docs/api.md, "Rate limits").

use super::*;
use reqwest::Method;

/// Three replicas with an empty database and small limits, counted in the Redis of the test run. The tests are
/// a trusted proxy, and each has its own client addresses.
struct Replicas {
    _database: TestDatabase,
    services: [Service; 3],
}

impl Replicas {
    async fn shared() -> Arc<Self> {
        static REPLICAS: Shared<Replicas> = Shared::empty();
        REPLICAS.get_or_start(Self::start).await
    }

    async fn start() -> Self {
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
        let services = [(); 3].map(|()| Service::start_with(database.url(), &options));
        Self { _database: database, services }
    }
}

/// A path of each group.
fn path_of(group: &str) -> String {
    match group {
        "lookup" => format!("/api/charts/{}", "0".repeat(64)),
        "rox" => format!("/api/charts/{}/rox", "0".repeat(64)),
        "preview" => format!("/api/charts/{}/preview", "0".repeat(64)),
        "list" => "/api/chartsets".into(),
        "detail" => format!("/api/chartsets/{}", "0".repeat(16)),
        "bulk" => "/api/charts/filter".into(),
        "feed" => "/api/changes".into(),
        other => format!("/{other}"),
    }
}

/// A client address that no other test and no other run uses.
fn client_address(number: u32) -> String {
    let [_, a, b, c] = (std::process::id() * 256 + number).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// A 429 has `Retry-After`, `RateLimit-Policy`, `RateLimit` and `Cache-Control: no-store`. Behind trusted
/// proxies the client is the right-most untrusted hop of `X-Forwarded-For`.
#[tokio::test]
async fn each_group_has_one_limit_across_all_replicas() {
    let replicas = Replicas::shared().await;
    let get = async |number: usize, path: &str| {
        let forwarded = format!("192.0.2.{number}, {}, 127.0.0.9", client_address(1));
        replicas.services[number % 3].client().get_with(path, &[("x-forwarded-for", &forwarded)]).await
    };
    for (group, limit) in [
        ("lookup", 5),
        ("rox", 4),
        ("list", 3),
        ("detail", 2),
        ("preview", 2),
        ("bulk", 2),
        ("feed", 2),
        ("other", 4),
    ] {
        let mut responses = Vec::new();
        for number in 0..limit + 2 {
            responses.push(get(number, &path_of(group)).await);
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
    for (group, path) in [("detail", "/go/chartset/0000000000000000"), ("bulk", "/api/charts/filter/1")] {
        let policy = get(0, path).await.header("ratelimit-policy").to_owned();
        assert_eq!(policy, format!("\"{group}\";q=2;w=60"), "{path} counts in this group");
    }
}

/// Whatever its method and status.
#[tokio::test]
async fn every_response_counts() {
    let replicas = Replicas::shared().await;
    let (client, path, address) = (replicas.services[0].client(), path_of("lookup"), client_address(0));
    for (method, path, condition, status) in [
        (Method::HEAD, &*path, "", 200),
        (Method::GET, &path, "*", 304),
        (Method::HEAD, &path, "*", 304),
        (Method::GET, "/api/charts/malformed", "", 400),
        (Method::HEAD, "/api/charts/malformed", "", 400),
        (Method::GET, &path, "*", 429),
    ] {
        let headers = [("x-forwarded-for", address.as_str()), ("if-none-match", condition)];
        assert_eq!(client.request(method.clone(), path, &headers).await.status, status, "{method} {path}");
    }
}

/// What no shared cache may keep says what is left, errors included, on every replica.
#[tokio::test]
async fn uncached_responses_of_extensions_have_the_budget() {
    let replicas = Replicas::shared().await;
    let address = client_address(2);
    let headers = [("x-forwarded-for", address.as_str()), ("content-type", "application/json")];
    let send = async |replica: usize, body: &str| {
        let client = replicas.services[replica].client();
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
    let other = client_address(3);
    let (client, headers) = (replicas.services[0].client(), [("x-forwarded-for", other.as_str())]);
    for (path, status, policy) in [
        ("/api/exports/latest", 404, "\"bulk\";q=2;w=60"),
        ("/api/changes?after=x", 400, "\"feed\";q=2;w=60"),
    ] {
        let error = client.get_with(path, &headers).await;
        assert_eq!((error.status.as_u16(), error.header("ratelimit-policy")), (status, policy), "{path}");
    }
    for group in ["lookup", "rox", "list", "detail", "feed"] {
        let response = client.get_with(&path_of(group), &headers).await;
        assert_eq!(response.header("ratelimit"), "", "{group}");
    }
}

/// Each route of the API and of the pages, with valid and with malformed parameters. Only assets have no limit.
/// Preflights and the private listener have none either.
#[tokio::test]
async fn every_route_is_limited() {
    let replicas = Replicas::shared().await;
    let client = replicas.services[0].client();
    let parameters = ["x", &"0".repeat(16), &"0".repeat(64), &"A".repeat(64), "%FF"];
    let paths = paths_of_all_routes(&client, &parameters).await;
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
    for (number, path) in (4..).zip(paths.iter().map(String::as_str).chain(queries)) {
        let address = client_address(number);
        let headers = [
            ("x-forwarded-for", address.as_str()),
            ("origin", "https://page.example"),
            ("access-control-request-method", "GET"),
        ];
        let mut statuses = Vec::new();
        while statuses.len() < 6 && statuses.last() != Some(&429) {
            statuses.push(client.get_with(path, &headers).await.status.as_u16());
        }
        assert_eq!(statuses.last(), Some(&429), "{path}: {statuses:?}");
        assert!(statuses.len() > 2, "{path}: {statuses:?}");
        let preflight = client.request(Method::OPTIONS, path, &headers).await;
        assert_eq!(preflight.status, 204, "{path}");
    }
    let (private, address) = (replicas.services[0].private_client(), client_address(4));
    for path in ["/livez", "/readyz", "/metrics"].repeat(6) {
        assert_eq!(private.get_with(path, &[("x-forwarded-for", &address)]).await.status, 200, "{path}");
    }
}

/// While Redis is unavailable. Without trusted proxies `X-Forwarded-For` is ignored. A 503 counts.
#[tokio::test]
async fn without_redis_each_replica_limits_on_its_own() {
    let variables = [("REDIS_URL", "redis://127.0.0.1:1"), ("RATE_LIMIT_LIST", "3")];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    for service in [(); 2].map(|()| Service::start_with("postgres://127.0.0.1:1/none", &options)) {
        for number in 0..4 {
            let address = client_address(number);
            let headers = [("x-forwarded-for", address.as_str())];
            let response = service.client().get_with("/api/chartsets", &headers).await;
            assert_eq!(response.status, if number == 3 { 429 } else { 503 });
        }
    }
}
