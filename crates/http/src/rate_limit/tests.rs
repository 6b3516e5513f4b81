//! Rate limits of routes.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{LimiterConfig, Limits};
use chart_index_redis::RedisConnection;
use tower::ServiceExt;

use super::*;
use crate::{
    CachePolicy, HashParam, MediaType, PublicApi, RequestHeaders, RequestLimitConfig, Routes, TextBody,
};

const LIMIT: u32 = 3;

/// A route with a parameter and an entity tag, a plain one, and one that fails.
fn app() -> Router {
    let limits = Limits::all(NonZeroU32::new(LIMIT).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, RedisConnection::disabled());
    let rate_limiter = HttpRateLimiter::new(limiter, "10.0.0.0/8".parse().unwrap());
    let text = async |HashParam(hash): HashParam, headers: RequestHeaders| {
        let body = TextBody::new(hash.to_string());
        body.into_response(&headers, CachePolicy::Lookup, MediaType::Json)
    };
    let routes = Routes::new()
        .route(Group::Lookup, "/text/{hash}", get(text))
        .route(Group::Lookup, "/plain", get(async || "response"))
        .route(Group::Lookup, "/failing", get(async || ApiError::Unavailable("the store".into())));
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    let service = PublicApi::new(routes, rate_limiter, &limits, Sampler::OFF).into_router();
    service.layer(Extension(PeerAddress("10.0.0.1".parse().unwrap())))
}

/// A request of a client behind a trusted proxy.
async fn send(app: &Router, method: Method, path: &str, client: &str, condition: Option<&str>) -> Response {
    let mut request =
        Request::builder().method(method).uri(path).header("host", "test").header("x-forwarded-for", client);
    if let Some(condition) = condition {
        request = request.header("if-none-match", condition);
    }
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// Asserts that requests up to the limit have this status and further ones are 429.
async fn assert_counted(method: Method, path: &str, condition: Option<&str>, status: u16) {
    let app = app();
    for number in 0..LIMIT {
        let response = send(&app, method.clone(), path, "192.0.2.1", condition).await;
        assert_eq!(response.status(), status, "request {number}: {method} {path}");
    }
    for _ in 0..2 {
        let refused = send(&app, method.clone(), path, "192.0.2.1", condition).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{method} {path}");
        assert_eq!(refused.headers()["ratelimit-policy"], "\"lookup\";q=3;w=60");
        assert!(refused.headers().contains_key("retry-after"));
    }
    let other = send(&app, method.clone(), path, "192.0.2.2", condition).await;
    assert_eq!(other.status(), status, "another client: {method} {path}");
}

fn text_path() -> String {
    format!("/text/{}", "ab".repeat(32))
}

#[tokio::test]
async fn every_response_counts() {
    let text = text_path();
    for (method, path, condition, status) in [
        (Method::GET, text.as_str(), None, 200),
        (Method::HEAD, &text, None, 200),
        (Method::HEAD, "/plain", None, 200),
        (Method::GET, &text, Some("*"), 304),
        (Method::GET, "/text/malformed", None, 400),
        (Method::GET, "/failing", None, 503),
    ] {
        assert_counted(method, path, condition, status).await;
    }
}

/// One limit for all responses of a group.
#[tokio::test]
async fn all_responses_of_a_group_share_its_limit() {
    let app = app();
    let path = text_path();
    for (method, path, condition) in [
        (Method::HEAD, path.as_str(), None),
        (Method::GET, "/text/malformed", None),
        (Method::GET, &path, Some("*")),
    ] {
        assert_ne!(send(&app, method, path, "192.0.2.1", condition).await.status(), 429);
    }
    assert_eq!(send(&app, Method::GET, "/plain", "192.0.2.1", None).await.status(), 429);
}

/// docs/api.md, "Rate limits": an IPv6 /48 as a whole has 16 times the limit.
#[tokio::test]
async fn refusal_names_the_network_limit() {
    let app = app();
    for client in 0..16 {
        for _ in 0..LIMIT {
            let client = format!("2001:db8:1:{client:x}::1");
            assert_eq!(send(&app, Method::GET, "/plain", &client, None).await.status(), 200);
        }
    }
    let refused = send(&app, Method::GET, "/plain", "2001:db8:1:ff::1", None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["ratelimit-policy"], "\"lookup-network\";q=48;w=60");
    let seconds = refused.headers()["retry-after"].to_str().unwrap();
    assert_eq!(refused.headers()["ratelimit"], format!("\"lookup-network\";r=0;t={seconds}"));
    assert_eq!(send(&app, Method::GET, "/plain", "2001:db8:2::1", None).await.status(), 200);
}
