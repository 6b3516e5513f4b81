//! The outcome of each read.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CachedResponse, FillError, MemoryLookup};
use chart_index_domain::ReadError;
use chart_index_redis::testing::RedisServer;
use chart_index_tests::RecordedTelemetry;
use futures_util::poll;
use tokio::task::yield_now;

use crate::support::{Replica, Store, eventually, key, version, wait_for_records};
use crate::{ReadResult, assert_reads, hanging, memory_only, reads};

fn fills(telemetry: &RecordedTelemetry, outcome: &str) -> i64 {
    let labels = [("chart_index_cache_group", "lookup"), ("chart_index_outcome", outcome)];
    telemetry.value("chart_index_cache_fill_duration_seconds", &labels).unwrap()
}

#[tokio::test]
async fn hits_and_misses_are_counted_by_tier() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let store = Store::default();
    let replica = Replica::patient(&server).await;
    replica.read(key(1), &store).await;
    assert_reads(&telemetry, &[("memory miss", 1.0), ("redis miss", 1.0), ("store filled", 1.0)]);
    replica.read(key(1), &store).await;
    let with_hit = [("memory hit", 1.0), ("memory miss", 1.0), ("redis miss", 1.0), ("store filled", 1.0)];
    assert_reads(&telemetry, &with_hit);
    wait_for_records(&server, 1).await;

    let other = Replica::patient(&server).await;
    other.read(key(1), &store).await;
    let of_both = [
        ("memory hit", 1.0),
        ("memory miss", 2.0),
        ("redis hit", 1.0),
        ("redis miss", 1.0),
        ("store filled", 1.0),
    ];
    assert_reads(&telemetry, &of_both);
    assert_eq!(store.reads(), 1);
    assert_eq!((fills(&telemetry, "found"), fills(&telemetry, "not_found")), (1, 0));
}

#[tokio::test]
async fn stale_response_counts_the_tiers_of_its_refresh() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let (replica, store) = (Replica::patient(&server).await, Store::default());
    replica.read(key(1), &store).await;
    wait_for_records(&server, 1).await;

    // Stale in Redis as well.
    replica.clock.advance(Duration::from_mins(12));
    replica.read(key(1), &store).await;
    eventually(async || store.reads() == 2).await;
    eventually(async || matches!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_))).await;
    let read_again = reads(&telemetry).into_iter().filter(|(read, _)| !read.starts_with("memory"));
    let expected = [("redis miss", 2.0), ("store filled", 2.0)];
    let expected = expected.map(|(read, number)| (read.to_owned(), number));
    assert_eq!(read_again.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn refresh_without_a_permit_is_not_counted() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let config = CacheConfig { max_fills: NonZeroUsize::MIN, ..CacheConfig::default() };
    let (replica, store) = (Replica::with(server.patient_config(), config).await, Store::default());
    replica.read(key(1), &store).await;
    wait_for_records(&server, 1).await;
    let mut slow = pin!(replica.cache.get(key(2), hanging));
    let is_in_flight =
        async || poll!(&mut slow).is_pending() && replica.cache.stats().fills_in_flight[0] == 1;
    eventually(is_in_flight).await;
    replica.clock.advance(Duration::from_mins(12));
    assert_eq!(replica.read(key(1), &store).await, version(0));
    eventually(async || replica.cache.stats().shed == 1).await;
    yield_now().await;
    let expected = [("memory miss", 2.0), ("memory stale", 1.0), ("redis miss", 3.0), ("store filled", 1.0)];
    assert_reads(&telemetry, &expected);
}

#[tokio::test]
async fn request_that_waits_for_a_fill_is_joined() {
    let telemetry = RecordedTelemetry::start();
    let (cache, store) = (memory_only(CacheConfig::default()), Store::default());
    let read = || {
        let store = store.clone();
        cache.get(key(1), || store.read())
    };
    let (first, second) = tokio::join!(read(), read());
    assert_eq!((first.unwrap(), second.unwrap()), (version(0), version(0)));
    // No Redis is configured, so none is read.
    assert_reads(&telemetry, &[("memory miss", 2.0), ("store filled", 1.0), ("store joined", 1.0)]);
}

#[tokio::test]
async fn failed_fill_is_an_error_without_an_older_response() {
    let telemetry = RecordedTelemetry::start();
    let store = Store::default();
    let config = CacheConfig { fill_timeout: Duration::from_millis(50), ..CacheConfig::default() };
    let cache = memory_only(config);
    store.set_down(true);
    let down = store.clone();
    cache.get(key(1), || down.read()).await.unwrap_err();
    let outcome = cache.get(key(2), hanging).await;
    assert!(matches!(outcome, Err(FillError::TimedOut)), "{outcome:?}");
    let outcome = cache
        .get(key(3), async || -> Result<CachedResponse, ReadError> { panic!("a defect in a fill") })
        .await;
    assert!(matches!(outcome, Err(FillError::Abandoned)), "{outcome:?}");
    cache.get(key(4), || async { Ok(CachedResponse::NotFound) }).await.unwrap();
    assert_reads(&telemetry, &[("memory miss", 4.0), ("store error", 3.0), ("store filled", 1.0)]);
    let fills = ["error", "timeout", "not_found", "found"].map(|outcome| fills(&telemetry, outcome));
    assert_eq!(fills, [2, 1, 1, 0], "a fill that panics is an error");
}

#[tokio::test]
async fn older_response_is_counted() {
    let telemetry = RecordedTelemetry::start();
    let config = CacheConfig { fallback_timeout: Duration::from_millis(50), ..CacheConfig::default() };
    let (clock, store) = (config.clock.clone(), Store::default());
    let cache = memory_only(config);
    let read = store.clone();
    cache.get(key(1), || read.read()).await.unwrap();
    clock.advance(Duration::from_secs(10));
    store.set_down(true);
    let down = store.clone();
    assert_eq!(cache.get(key(1), || down.read()).await.unwrap(), version(0));
    assert_reads(&telemetry, &[("memory miss", 2.0), ("store filled", 1.0), ("store older", 1.0)]);
    // Not within a second of the failure.
    clock.advance(Duration::from_secs(2));
    assert_eq!(cache.get(key(1), hanging).await.unwrap(), version(0));
    assert_reads(&telemetry, &[("memory miss", 3.0), ("store filled", 1.0), ("store older", 2.0)]);
}

#[tokio::test]
async fn dropped_request_is_counted() {
    let telemetry = RecordedTelemetry::start();
    let cache = memory_only(CacheConfig::default());
    let fills_in_flight =
        || telemetry.value("chart_index_cache_fills_in_flight", &[("chart_index_pool", "store")]);
    {
        let mut first = pin!(cache.get(key(1), hanging));
        let mut second = pin!(cache.get(key(1), hanging));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        yield_now().await;
        assert_eq!(fills_in_flight(), Some(1));
    }
    assert_reads(&telemetry, &[("memory miss", 2.0), ("store dropped", 2.0)]);
    assert_eq!(fills_in_flight(), Some(1), "the fill continues without them");
}

#[tokio::test]
async fn request_above_the_limits_is_an_error_or_older() {
    let telemetry = RecordedTelemetry::start();
    let config = CacheConfig { max_waiting_requests: NonZeroUsize::MIN, ..CacheConfig::default() };
    let (clock, store) = (config.clock.clone(), Store::default());
    let cache = memory_only(config);
    let read = store.clone();
    cache.get(key(1), || read.read()).await.unwrap();
    clock.advance(Duration::from_secs(10));
    let mut waiting = pin!(cache.get(key(2), hanging));
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(cache.get(key(1), hanging).await.unwrap(), version(0));
    let refused: ReadResult = cache.get(key(3), hanging).await;
    assert!(matches!(refused, Err(FillError::Overloaded)), "{refused:?}");
    let expected = [("memory miss", 4.0), ("store error", 1.0), ("store filled", 1.0), ("store older", 1.0)];
    assert_reads(&telemetry, &expected);
}
