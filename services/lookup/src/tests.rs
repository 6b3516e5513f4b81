//! The routes, with a store whose database is unavailable.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use chart_index_store::StoreConfig;
use tower::ServiceExt;

use chart_index_cache::{Cache, CacheConfig, CacheConnections};
use chart_index_http::{HttpRateLimiter, PublicApi, RequestLimitConfig};
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{Limiter, LimiterConfig, TrustedProxies};

use super::*;

async fn status(path: &str) -> u16 {
    // Nothing listens on port 1.
    let store = Store::new(&StoreConfig::new("postgres://user@127.0.0.1:1/none".parse().unwrap()));
    let request = Request::get(path).header("host", "test").body(Body::empty()).unwrap();
    let routes = routes(LookupState {
        store,
        cache: ResponseCache::new(Cache::new(CacheConfig::default(), CacheConnections::disabled())),
        public_objects: None,
        source_pages: SourcePages {
            alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
            beta_source_page: "https://beta.example/packs".parse().unwrap(),
        },
        background: Handle::current(),
    });
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    let service = PublicApi::new(routes, rate_limiter(), &limits, Sampler::OFF).into_router();
    service.oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn malformed_hash_is_400_without_a_read() {
    let upper = "AB".repeat(32);
    for hash in [upper.as_str(), "ab", "%FF"] {
        assert_eq!(status(&format!("/api/charts/{hash}")).await, 400, "{hash}");
        for suffix in ["rox", "preview"] {
            assert_eq!(status(&format!("/api/charts/{hash}/{suffix}")).await, 400, "{hash}");
        }
    }
}

#[tokio::test]
async fn unavailable_store_is_503_and_not_unknown_or_404() {
    let hash = "ab".repeat(32);
    assert_eq!(status(&format!("/api/charts/{hash}")).await, 503);
    for suffix in ["rox", "preview"] {
        assert_eq!(status(&format!("/api/charts/{hash}/{suffix}")).await, 503);
    }
}

/// The default rate limits are higher than the number of requests of a test.
fn rate_limiter() -> HttpRateLimiter {
    let redis = chart_index_redis::RedisConnection::disabled();
    HttpRateLimiter::new(Limiter::new(LimiterConfig::default(), redis), TrustedProxies::default())
}
