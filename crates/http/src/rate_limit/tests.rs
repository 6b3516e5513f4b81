//! The limit around routes whose handlers take the check, leave it, or fail before they could.

use std::num::NonZeroU32;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::routing::get;
use chart_index_cache::{Cache, CacheConfig, CacheConnections, CacheKey};
use chart_index_domain::ReadError;
use chart_index_ratelimit::{LimiterConfig, Limits};
use chart_index_redis::RedisConnection;
use tower::ServiceExt;

use super::*;
use crate::{CachePolicy, HashParam, JsonBody, RequestHeaders, ResponseCache};

const LIMIT: u32 = 3;

/// A route whose handler takes the check with its answer, one whose handler never does, and one that fails after it.
fn app() -> Router {
    let limits = Limits::all(NonZeroU32::new(LIMIT).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, RedisConnection::disabled());
    let limiting = RateLimiting::new(limiter, "10.0.0.0/8".parse().unwrap());
    let cache = Cache::<ReadError>::new(CacheConfig::default(), CacheConnections::disabled()).unwrap();
    let cache = ResponseCache::new(limiting.clone(), cache);
    let taking = async move |check: RateLimitCheck, HashParam(hash): HashParam, headers: RequestHeaders| {
        let fill = async move || Ok(JsonBody::render(&hash.to_string())?.into_cached());
        let found = cache.read_json(&check, CacheKey::lookup(hash), &headers, fill).await?;
        let body = found.ok_or(ApiError::NotFound(crate::Resource::Endpoint))?;
        Ok::<_, ApiError>(body.into_response(&headers, CachePolicy::Lookup))
    };
    let routes = Router::new()
        .route("/taking/{hash}", get(taking))
        .route("/leaving", get(async || "answer"))
        .route("/failing", get(async || ApiError::Unavailable("the store".into())));
    limiting.limit(Group::Lookup, routes)
}

/// A request of a client behind a trusted proxy.
async fn ask(app: &Router, method: Method, path: &str, client: &str, condition: Option<&str>) -> Response {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-forwarded-for", client)
        .extension(Peer("10.0.0.1".parse().unwrap()));
    if let Some(condition) = condition {
        request = request.header("if-none-match", condition);
    }
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// As many requests as the limit are answered with that status, and the next one with 429.
async fn counts(method: Method, path: &str, condition: Option<&str>, status: u16) {
    let app = app();
    for number in 0..LIMIT {
        let answer = ask(&app, method.clone(), path, "192.0.2.1", condition).await;
        assert_eq!(answer.status(), status, "request {number}: {method} {path}");
    }
    for _ in 0..2 {
        let refused = ask(&app, method.clone(), path, "192.0.2.1", condition).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{method} {path}");
        assert_eq!(refused.headers()["ratelimit-policy"], "\"lookup\";q=3;w=60");
        assert!(refused.headers().contains_key("retry-after"));
    }
    let other = ask(&app, method.clone(), path, "192.0.2.2", condition).await;
    assert_eq!(other.status(), status, "another client: {method} {path}");
}

fn taking() -> String {
    format!("/taking/{}", "ab".repeat(32))
}

#[tokio::test]
async fn an_answer_that_travels_with_its_check_counts_once() {
    counts(Method::GET, &taking(), None, 200).await;
}

#[tokio::test]
async fn a_head_request_counts() {
    counts(Method::HEAD, &taking(), None, 200).await;
    counts(Method::HEAD, "/leaving", None, 200).await;
}

#[tokio::test]
async fn a_304_counts() {
    counts(Method::GET, &taking(), Some("*"), 304).await;
}

#[tokio::test]
async fn a_400_counts() {
    counts(Method::GET, "/taking/malformed", None, 400).await;
}

#[tokio::test]
async fn a_handler_that_does_not_take_the_check_is_limited() {
    counts(Method::GET, "/leaving", None, 200).await;
}

#[tokio::test]
async fn a_failure_counts() {
    counts(Method::GET, "/failing", None, 503).await;
}

/// One limit for all responses of a group.
#[tokio::test]
async fn all_responses_of_a_group_share_its_limit() {
    let app = app();
    let path = taking();
    for (method, path, condition) in [
        (Method::HEAD, path.as_str(), None),
        (Method::GET, "/taking/malformed", None),
        (Method::GET, &path, Some("*")),
    ] {
        assert_ne!(ask(&app, method, path, "192.0.2.1", condition).await.status(), 429);
    }
    assert_eq!(ask(&app, Method::GET, "/leaving", "192.0.2.1", None).await.status(), 429);
}

/// docs/api.md, "Limits": an IPv6 /48 as a whole has 16 times the limit.
#[tokio::test]
async fn a_network_at_its_limit_is_named() {
    let app = app();
    for client in 0..16 {
        for _ in 0..LIMIT {
            let client = format!("2001:db8:1:{client:x}::1");
            assert_eq!(ask(&app, Method::GET, "/leaving", &client, None).await.status(), 200);
        }
    }
    let refused = ask(&app, Method::GET, "/leaving", "2001:db8:1:ff::1", None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["ratelimit-policy"], "\"lookup-network\";q=48;w=60");
    let seconds = refused.headers()["retry-after"].to_str().unwrap();
    assert_eq!(refused.headers()["ratelimit"], format!("\"lookup-network\";r=0;t={seconds}"));
    assert_eq!(ask(&app, Method::GET, "/leaving", "2001:db8:2::1", None).await.status(), 200);
}
