//! The routes over a store whose database is away.

use axum::body::Body;
use axum::http::Request;
use chart_index_store::StoreConfig;
use tower::ServiceExt;

use chart_index_cache::{Cache, CacheConfig, CacheConnections};
use chart_index_http::HttpRateLimiter;
use chart_index_ratelimit::{Limiter, LimiterConfig, TrustedProxies};

use super::*;

async fn status(path: &str) -> u16 {
    // Nothing listens on port 1.
    let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
    let request = Request::get(path).body(Body::empty()).unwrap();
    router(LookupState { store, cache: unlimited() }).oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_malformed_hash_is_400_without_asking_the_store() {
    let upper = "AB".repeat(32);
    for hash in [upper.as_str(), "ab", "%FF"] {
        assert_eq!(status(&format!("/api/charts/{hash}")).await, 400, "{hash}");
        assert_eq!(status(&format!("/api/charts/{hash}/rox")).await, 400, "{hash}");
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_503_and_never_unknown_or_404() {
    let hash = "ab".repeat(32);
    assert_eq!(status(&format!("/api/charts/{hash}")).await, 503);
    assert_eq!(status(&format!("/api/charts/{hash}/rox")).await, 503);
}

/// The limits of a service without Redis: far above what a test asks for.
fn unlimited() -> ResponseCache {
    let redis = chart_index_redis::RedisConnection::disabled();
    let limiting =
        HttpRateLimiter::new(Limiter::new(LimiterConfig::default(), redis), TrustedProxies::default());
    ResponseCache::new(limiting, Cache::new(CacheConfig::default(), CacheConnections::disabled()).unwrap())
}
