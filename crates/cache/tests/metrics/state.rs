//! Memory, fills in flight, what is known of the catalogue.

use std::pin::pin;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse};
use chart_index_domain::ReadError;
use chart_index_domain::search::Engine;
use chart_index_redis::testing::RedisServer;
use chart_index_tests::RecordedTelemetry;
use futures_util::poll;
use tokio::task::yield_now;

use crate::support::{Replica, key};
use crate::{hanging, memory_only};

#[tokio::test]
async fn memory_is_reported() {
    let telemetry = RecordedTelemetry::start();
    let cache = memory_only(CacheConfig { bytes: 4 << 20, ..CacheConfig::default() });
    let value = |name: &str| telemetry.value(&format!("chart_index_cache_{name}"), &[]).unwrap();
    let state = || ["size_limit_bytes", "size_bytes", "entries", "evictions_total"].map(value);
    assert_eq!(state(), [4 << 20, 0, 0, 0]);
    let count = 1_000_u32;
    for number in 0..count {
        let fill = || async { Ok::<_, ReadError>(CachedResponse::found(vec![0; 6_000], "tag")) };
        cache.get(key(number.into()), fill).await.unwrap();
    }
    let [limit, size, entries, evictions] = state();
    assert!(size > limit / 2 && size <= limit, "{size}");
    assert!(entries > 400 && evictions > 0, "{entries} entries, {evictions} evictions");
    assert_eq!(entries + evictions, i64::from(count));
    drop(cache);
    assert_eq!(telemetry.value("chart_index_cache_size_bytes", &[]), None, "the cache no longer exists");
}

#[tokio::test]
async fn fills_in_flight_are_reported_by_pool() {
    let telemetry = RecordedTelemetry::start();
    let cache = memory_only(CacheConfig::default());
    let in_flight = || {
        ["store", "search", "postgres_search"].map(|pool| {
            telemetry.value("chart_index_cache_fills_in_flight", &[("chart_index_pool", pool)]).unwrap()
        })
    };
    assert_eq!(in_flight(), [0, 0, 0]);
    let (list, page) = (CacheKey::list(b""), CacheKey::page(b""));
    let searched = list.searched_by(Engine::Postgres);
    let mut fills =
        [key(1), key(2), key(3), list, page, searched].map(|key| Box::pin(cache.get(key, hanging)));
    for fill in &mut fills {
        assert!(poll!(pin!(fill)).is_pending());
    }
    yield_now().await;
    assert_eq!(in_flight(), [3, 2, 1]);
}

#[tokio::test]
async fn knowledge_of_the_catalogue_is_reported() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let replica = Replica::starting(&server.config(), CacheConfig::default());
    let value = |name: &str| telemetry.value(&format!("chart_index_cache_{name}"), &[]).unwrap();
    let known = || ["confirmed", "recent_changes"].map(value);
    assert_eq!(known(), [0, 0]);
    replica.poll(2, &[1, 2]);
    assert_eq!(known(), [1, 2]);
}
