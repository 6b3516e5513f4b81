//! Rate limits of networks.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use axum::{Extension, Router};
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{LimiterConfig, Limits};
use chart_index_redis::RedisConnection;
use tower::ServiceExt;

use super::*;
use crate::{PublicApi, RequestLimitConfig, Routes};

const LIMIT: u32 = 3;

fn app() -> Router {
    let limits = Limits::all(NonZeroU32::new(LIMIT).unwrap());
    let limiter =
        Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, RedisConnection::disabled());
    let rate_limiter = HttpRateLimiter::new(limiter, "10.0.0.0/8".parse().unwrap());
    let routes = Routes::new().route(Group::Lookup, "/plain", get(async || "response"));
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    let service = PublicApi::new(routes, rate_limiter, &limits, Sampler::OFF).into_router();
    service.layer(Extension(PeerAddress("10.0.0.1".parse().unwrap())))
}

/// docs/api.md, "Rate limits": an IPv6 /48 as a whole has 16 times the limit.
#[tokio::test]
async fn refusal_names_the_network_limit() {
    let app = app();
    // A request of a client behind a trusted proxy.
    let get = async |client: &str| {
        let request = Request::get("/plain").header("host", "test").header("x-forwarded-for", client);
        app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    };
    for client in 0..16 {
        for _ in 0..LIMIT {
            assert_eq!(get(&format!("2001:db8:1:{client:x}::1")).await.status(), 200);
        }
    }
    let refused = get("2001:db8:1:ff::1").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["ratelimit-policy"], "\"lookup-network\";q=48;w=60");
    let seconds = refused.headers()["retry-after"].to_str().unwrap();
    assert_eq!(refused.headers()["ratelimit"], format!("\"lookup-network\";r=0;t={seconds}"));
    assert_eq!(get("2001:db8:2::1").await.status(), 200);
}
