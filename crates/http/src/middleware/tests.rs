//! The service with test routes.

mod bodies;
mod log_lines;
mod metrics;
mod spans;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, Version, request};
use axum::routing::get;
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{Group, Limiter, LimiterConfig};
use chart_index_redis::RedisConnection;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::*;
use crate::rate_limit::PeerAddress;
use crate::{ApiError, CachePolicy, HttpRateLimiter, MediaType, Overload, RequestHeaders, TextBody};

const DEADLINE: Duration = Duration::from_secs(5);

/// The peer address of requests without a server.
const PEER: &str = "0.0.0.0";

/// Routes that respond, panic, fail, are overloaded, never complete, and wait to be released.
fn routes(entered: Arc<Notify>, release: Arc<Notify>) -> Routes {
    let large = async |headers: RequestHeaders| {
        let body = TextBody::json(&"x".repeat(5000))?;
        Ok::<_, ApiError>(body.into_response(&headers, CachePolicy::Lookup, MediaType::Json))
    };
    let wait = async move || {
        entered.notify_one();
        release.notified().await;
        "released"
    };
    let panicking = async || -> &'static str { panic!("secret of the handler") };
    let unavailable = async || ApiError::Unavailable("secret of the store".into());
    let overloaded = async || ApiError::Overloaded(Overload::Fills);
    Routes::new()
        .route(Group::Lookup, "/large/{name}", get(large))
        .route(Group::Lookup, "/panic", get(panicking))
        .route(Group::Lookup, "/unavailable", get(unavailable))
        .route(Group::Detail, "/overloaded", get(overloaded))
        .route(Group::Lookup, "/endless", get(std::future::pending::<()>))
        .route(Group::List, "/wait", get(wait))
}

fn app() -> Router {
    limited_app(8, Arc::default(), Arc::default())
}

fn limited_app(max_requests_in_flight: u32, entered: Arc<Notify>, release: Arc<Notify>) -> Router {
    let config = config(max_requests_in_flight);
    PublicApi::new(routes(entered, release), rate_limiter(240, PEER), &config, Sampler::OFF).into_router()
}

/// The app for requests from this peer.
fn from_peer(app: Router, peer: &str) -> Router {
    app.layer(Extension(PeerAddress(peer.parse().unwrap())))
}

fn config(max_requests_in_flight: u32) -> RequestLimitConfig {
    let max_requests_in_flight = NonZeroU32::new(max_requests_in_flight).unwrap();
    RequestLimitConfig { request_deadline: DEADLINE, max_requests_in_flight }
}

/// A rate limiter without Redis, with this limit for all groups.
fn rate_limiter(limit: u32, trusted_proxies: &str) -> HttpRateLimiter {
    let limits = chart_index_ratelimit::Limits::all(NonZeroU32::new(limit).unwrap());
    let config = LimiterConfig { limits, ..LimiterConfig::default() };
    HttpRateLimiter::new(Limiter::new(config, RedisConnection::disabled()), trusted_proxies.parse().unwrap())
}

/// Repeats requests until the subscriber of this thread has seen what they record. If another test registers
/// the call site of an event or a span while the subscriber is set, tracing-core may regard it as disabled,
/// until it asks the subscribers again.
async fn wait_until_recorded(mut is_recorded: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        tracing::callsite::rebuild_interest_cache();
        if is_recorded().await {
            return;
        }
    }
    panic!("something is not recorded");
}

struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Response {
    #[track_caller]
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers)).to_str().unwrap()
    }

    /// Asserts that the body is problem details with this status, and returns its type.
    #[track_caller]
    fn problem(&self, status: u16) -> String {
        assert_eq!((self.status.as_u16(), self.header("content-type")), (status, "application/problem+json"));
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], status);
        assert!(!problem.to_string().contains("secret"), "{problem}");
        problem["type"].as_str().unwrap().to_owned()
    }
}

async fn send(app: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let headers = [&[("host", "test")], headers].concat();
    send_exactly(app, Request::builder().method(method).uri(path), &headers).await
}

/// Sends a request with these headers only.
async fn send_exactly(app: &Router, mut request: request::Builder, headers: &[(&str, &str)]) -> Response {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Response { status: parts.status, headers: parts.headers, body }
}

/// Sends a request that enters the handler and waits there to be released.
async fn send_waiting(app: &Router, entered: &Notify) -> JoinHandle<Response> {
    let app = app.clone();
    let waiting = tokio::spawn(async move { send(&app, "GET", "/wait", &[]).await });
    entered.notified().await;
    waiting
}

#[tokio::test]
async fn preflights_succeed_on_any_path_during_overload() {
    let entered = Arc::new(Notify::new());
    let app = limited_app(1, Arc::clone(&entered), Arc::default());
    let waiting = send_waiting(&app, &entered).await;
    for path in ["/large/a", "/nothing"] {
        let headers = [
            ("origin", "https://game.example"),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "if-none-match"),
        ];
        let response = send(&app, "OPTIONS", path, &headers).await;
        assert_eq!(response.status, 204, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(response.header("access-control-allow-methods"), "GET, HEAD");
        assert_eq!(response.header("access-control-allow-headers"), "*");
        assert_eq!(response.header("access-control-max-age"), "86400");
        assert!(!response.headers.contains_key("content-length"));
    }
    waiting.abort();
}

#[tokio::test]
async fn panic_is_a_500_problem() {
    let response = send(&app(), "GET", "/panic", &[]).await;
    assert_eq!(response.problem(500), "/problems/internal");
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("access-control-allow-origin"), "*");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    assert!(response.headers.contains_key("x-request-id"));
}

/// Of eight requests in flight lists may be two.
#[tokio::test]
async fn group_at_its_limit_leaves_room_for_others() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let app = limited_app(8, Arc::clone(&entered), Arc::clone(&release));
    let waiting = [send_waiting(&app, &entered).await, send_waiting(&app, &entered).await];
    let shed = send(&app, "GET", "/wait", &[]).await;
    assert_eq!((shed.problem(503).as_str(), shed.header("retry-after")), ("/problems/overloaded", "1"));
    assert_eq!(send(&app, "GET", "/large/a", &[]).await.status, 200);
    assert_eq!(send(&app, "GET", "/nothing", &[]).await.status, 404);
    for waiting in waiting {
        release.notify_one();
        assert_eq!(waiting.await.unwrap().body, b"released");
    }
    release.notify_one();
    assert_eq!(send(&app, "GET", "/wait", &[]).await.status, 200);
}

#[tokio::test]
async fn requests_above_the_concurrency_limit_are_shed() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let app = limited_app(1, Arc::clone(&entered), Arc::clone(&release));
    let waiting = send_waiting(&app, &entered).await;
    let shed = send(&app, "GET", "/large/a", &[]).await;
    assert_eq!(shed.problem(503), "/problems/overloaded");
    assert_eq!(shed.header("retry-after"), "1");
    release.notify_one();
    assert_eq!(waiting.await.unwrap().body, b"released");
    assert_eq!(send(&app, "GET", "/large/a", &[]).await.status, 200);
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn request_without_one_valid_host_is_a_400_problem() {
    let request = |version| Request::builder().version(version).uri("/large/a");
    for headers in [
        &[][..],
        &[("host", "one"), ("host", "one")],
        &[("host", "one"), ("host", "two")],
        &[("host", "")],
        &[("host", "one two")],
        &[("host", "user@one")],
    ] {
        let response = send_exactly(&app(), request(Version::HTTP_11), headers).await;
        assert_eq!(response.problem(400), "/problems/bad-host", "{headers:?}");
    }
    let preflight = [("origin", "https://game.example"), ("access-control-request-method", "GET")];
    let response = send_exactly(&app(), request(Version::HTTP_11).method("OPTIONS"), &preflight).await;
    assert_eq!(response.problem(400), "/problems/bad-host", "a preflight as well");

    assert_eq!(send_exactly(&app(), request(Version::HTTP_10), &[]).await.status, 200);
    let two = [("host", "one"), ("host", "two")];
    assert_eq!(send_exactly(&app(), request(Version::HTTP_10), &two).await.status, 400);
    assert_eq!(send_exactly(&app(), request(Version::HTTP_11), &[("host", "[::1]:8080")]).await.status, 200);
}

/// docs/api.md, "Rate limits": requests without an endpoint have their own group.
#[tokio::test]
async fn requests_without_a_route_share_a_limit() {
    let routes = routes(Arc::default(), Arc::default());
    let app = PublicApi::new(routes, rate_limiter(5, ""), &config(8), Sampler::OFF).into_router();
    let preflight = [("origin", "https://game.example"), ("access-control-request-method", "GET")];
    for _ in 0..6 {
        let status = send(&app, "OPTIONS", "/nothing", &preflight).await.status;
        assert_eq!(status, 204, "preflights do not count");
    }
    let long = format!("/large/a?{}", "q".repeat(9_000));
    let without_route = [
        ("GET", "/nothing", 404),
        ("HEAD", "/nothing", 404),
        ("POST", "/large/a", 405),
        ("OPTIONS", "/large/a", 405),
        ("GET", &long, 414),
    ];
    for (method, path, status) in without_route {
        assert_eq!(send(&app, method, path, &[]).await.status, status, "{method} {path}");
    }
    for (method, path, _) in without_route {
        let refused = send(&app, method, path, &[]).await;
        assert_eq!(refused.status, 429, "{method} {path}");
        assert_eq!(refused.header("ratelimit-policy"), "\"other\";q=5;w=60");
        assert!(refused.headers.contains_key("retry-after"));
    }
    let no_host = Request::builder().uri("/large/a");
    assert_eq!(send_exactly(&app, no_host, &[]).await.status, 429);
    assert_eq!(
        send(&app, "GET", "/large/a", &[]).await.status,
        200,
        "requests with a route are not affected"
    );
}

#[tokio::test]
async fn request_id_of_a_trusted_proxy_is_accepted() {
    let accepted = send(&app(), "GET", "/nothing", &[("x-request-id", "from-the-proxy")]).await;
    assert_eq!(accepted.header("x-request-id"), "from-the-proxy");
    let client = from_peer(app(), "192.0.2.1");
    for (app, id) in [(app(), "not plain"), (client, "from-a-client")] {
        let replaced = send(&app, "GET", "/nothing", &[("x-request-id", id)]).await;
        assert_eq!(replaced.header("x-request-id").len(), 32, "{id}");
    }
}
