//! Single-flight fills, their limits and timeouts.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CacheKey, CachedResponse, FillError, MemoryLookup, Representation};
use chart_index_domain::ReadError;
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use futures_util::poll;
use tokio::sync::Notify;

use crate::support::{Replica, Store, eventually, key, version, wait_for_records};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_misses_share_one_fill_per_replica() {
    let server = RedisServer::start(&[]);
    let replicas = join_all((0..3).map(|_| Replica::patient(&server))).await;
    let store = Store::default();
    let reads = (0..1_000).map(|number| replicas[number % 3].read(key(1), &store));
    assert!(join_all(reads).await.iter().all(|response| *response == version(0)));
    assert!((1..=3).contains(&store.reads()), "{} fills", store.reads());
}

#[tokio::test]
async fn dropped_request_does_not_cancel_the_fill() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let fill = {
        let (started, release) = (Arc::clone(&started), Arc::clone(&release));
        async move {
            started.notify_one();
            release.notified().await;
            Ok(version(0))
        }
    };
    let cache = replica.cache.clone();
    let client = tokio::spawn(async move { cache.get(key(1), || fill).await });
    started.notified().await;
    let mut waiting = pin!(
        replica
            .cache
            .get(key(1), async || -> Result<CachedResponse, ReadError> { panic!("a fill is in flight") })
    );
    assert!(poll!(&mut waiting).is_pending());
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    release.notify_one();
    assert_eq!(waiting.await.unwrap(), version(0), "the other waiter has its response");
    assert_eq!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(version(0)));
}

#[tokio::test]
async fn waiters_share_the_error_and_the_next_request_retries() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    store.set_down(true);
    let outcomes = join_all((0..100).map(|_| {
        let store = store.clone();
        replica.cache.get(key(1), || store.read())
    }));
    assert!(outcomes.await.iter().all(|outcome| matches!(outcome, Err(FillError::Failed(_)))));
    assert_eq!(store.reads(), 1);
    store.set_down(false);
    assert_eq!(replica.read(key(1), &store).await, version(0));
}

#[tokio::test]
async fn panicking_fill_is_an_error_and_is_retried() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let outcomes = join_all((0..10).map(|_| {
        replica.cache.get(key(1), async || -> Result<CachedResponse, ReadError> {
            tokio::task::yield_now().await;
            panic!("a defect in a fill")
        })
    }));
    assert!(outcomes.await.iter().all(|outcome| matches!(outcome, Err(FillError::Abandoned))));
    assert_eq!(replica.read(key(1), &Store::default()).await, version(0));
}

#[tokio::test]
async fn stale_response_is_served_and_refreshed_once() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    store.update();
    replica.clock.advance(Duration::from_mins(12));
    let responses = join_all((0..100).map(|_| replica.read(key(1), &store))).await;
    assert!(responses.iter().all(|response| *response == version(0)));
    eventually(async || replica.cache.get_from_memory(&key(1)) == MemoryLookup::Fresh(version(1))).await;
    assert_eq!(store.reads(), 2);
}

#[tokio::test]
async fn old_response_is_served_only_while_the_store_fails() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    replica.poll_other_origin(1);
    replica.clock.advance(Duration::from_mins(20));
    store.update();
    store.set_down(true);
    for _ in 0..50 {
        assert_eq!(replica.read(key(1), &store).await, version(0));
    }
    assert!((2..=4).contains(&store.reads()), "one attempt per second");
    store.set_down(false);
    replica.clock.advance(Duration::from_secs(2));
    assert_eq!(replica.read(key(1), &store).await, version(1));
    store.set_down(true);
    replica.clock.advance(Duration::from_hours(2));
    let outcome = replica.cache.get(key(1), move || store.read()).await;
    assert!(matches!(outcome, Err(FillError::Failed(_))), "the older response has expired");
}

#[tokio::test]
async fn hanging_store_falls_back_to_an_older_response() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    replica.read(key(1), &Store::default()).await;
    replica.poll_other_origin(1);
    replica.clock.advance(Duration::from_mins(20));
    let hanging = || replica.cache.get(key(1), std::future::pending::<Result<CachedResponse, ReadError>>);
    let started = tokio::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(hanging().await.unwrap(), version(0));
    }
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
}

/// Memory is empty when the wait begins.
#[tokio::test]
async fn hanging_store_falls_back_to_an_older_response_in_redis() {
    let server = RedisServer::start(&[]);
    Replica::patient(&server).await.read(key(1), &Store::default()).await;
    wait_for_records(&server, 1).await;
    let replica = Replica::patient(&server).await;
    replica.poll_other_origin(1);
    let started = tokio::time::Instant::now();
    let hanging = std::future::pending::<Result<CachedResponse, ReadError>>;
    assert_eq!(replica.cache.get(key(1), hanging).await.unwrap(), version(0));
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

async fn limited(server: &RedisServer, max_fills: usize, max_waiting_requests: usize) -> Replica {
    let config = CacheConfig {
        max_fills: NonZeroUsize::new(max_fills).unwrap(),
        max_waiting_requests: NonZeroUsize::new(max_waiting_requests).unwrap(),
        fill_timeout: Duration::from_secs(1),
        fill_permit_timeout: Duration::from_millis(250),
        ..CacheConfig::default()
    };
    Replica::with(server.config(), config).await
}

#[tokio::test]
async fn refreshes_leave_permits_to_misses() {
    let server = RedisServer::start(&[]);
    let replica = limited(&server, 1, 8).await;
    let store = Store::default();
    for number in 1..=20 {
        replica.read(key(number), &store).await;
    }
    replica.clock.advance(Duration::from_mins(12));
    let release = Arc::new(Notify::new());
    let mut slow = pin!(replica.cache.get(key(21), {
        let release = Arc::clone(&release);
        async move || {
            release.notified().await;
            Ok(version(0))
        }
    }));
    let in_flight = async || {
        assert!(poll!(&mut slow).is_pending());
        replica.cache.stats().fills_in_flight[0] == 1
    };
    eventually(in_flight).await;
    for number in 1..=20 {
        assert_eq!(replica.read(key(number), &store).await, version(0), "stale");
    }
    eventually(async || replica.cache.stats().shed == 20).await;
    let mut missing = pin!(replica.read(key(22), &store));
    assert!(poll!(&mut missing).is_pending());
    release.notify_one();
    assert_eq!(slow.await.unwrap(), version(0));
    assert_eq!(missing.await, version(0));
    assert_eq!(store.reads(), 20 + 1, "no refresh waited for a permit");
    // A refresh is tried again a second after the last attempt.
    store.update();
    replica.clock.advance(Duration::from_secs(2));
    assert_eq!(replica.read(key(1), &store).await, version(0));
    eventually(async || replica.cache.get_from_memory(&key(1)) == MemoryLookup::Fresh(version(1))).await;
}

/// A read of a store that never responds.
fn hanging(replica: &Replica, key: CacheKey) -> impl Future<Output = Result<CachedResponse, FillError>> {
    let cache = replica.cache.clone();
    async move { cache.get(key, std::future::pending::<Result<CachedResponse, ReadError>>).await }
}

#[tokio::test]
async fn hanging_fill_times_out_and_is_retried() {
    let server = RedisServer::start(&[]);
    let replica = limited(&server, 64, 64).await;
    let started = tokio::time::Instant::now();
    let outcomes = join_all((0..10).map(|_| hanging(&replica, key(1)))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(FillError::TimedOut))), "{outcomes:?}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!((replica.cache.stats().fills, replica.cache.stats().failed_fills), (1, 1));
    assert_eq!(replica.read(key(1), &Store::default()).await, version(0));
}

#[tokio::test]
async fn hanging_fill_times_out_after_its_request_was_dropped() {
    let server = RedisServer::start(&[]);
    let replica = limited(&server, 64, 64).await;
    let given_up = tokio::time::timeout(Duration::from_millis(100), hanging(&replica, key(1))).await;
    assert!(given_up.is_err());
    eventually(async || replica.cache.stats().failed_fills == 1).await;
    assert_eq!(replica.read(key(1), &Store::default()).await, version(0));
}

#[tokio::test]
async fn fills_above_the_limit_are_shed_but_hits_are_not() {
    let server = RedisServer::start(&[]);
    let replica = limited(&server, 4, 100).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut in_flight: Vec<_> = (10..14).map(|number| Box::pin(hanging(&replica, key(number)))).collect();
    for fill in &mut in_flight {
        assert!(poll!(fill).is_pending());
    }
    eventually(async || {
        for fill in &mut in_flight {
            assert!(poll!(fill).is_pending());
        }
        replica.cache.stats().fills == 5
    })
    .await;
    let started = tokio::time::Instant::now();
    assert!(matches!(hanging(&replica, key(20)).await, Err(FillError::Overloaded)));
    assert!(
        started.elapsed() < Duration::from_millis(800),
        "before a permit is free: {:?}",
        started.elapsed()
    );
    assert_eq!(replica.read(key(1), &store).await, version(0));
    assert_eq!((replica.cache.stats().fills, replica.cache.stats().shed), (5, 1));

    let list = CacheKey::list(b"");
    assert_eq!(replica.read(list, &store).await, version(0), "lists have permits of their own");
    join_all(in_flight).await;
    assert_eq!(replica.read(key(20), &store).await, version(0), "the permits are free again");
}

#[tokio::test]
async fn requests_above_the_limit_do_not_wait_for_a_fill() {
    let server = RedisServer::start(&[]);
    let replica = limited(&server, 4, 8).await;
    let store = Store::default();
    replica.read(key(1), &store).await;
    let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(hanging(&replica, key(10)))).collect();
    let is_in_flight = async || {
        assert!(poll!(&mut waiting[0]).is_pending());
        replica.cache.stats().fills_in_flight[0] == 1
    };
    eventually(is_in_flight).await;
    for request in &mut waiting[1..] {
        assert!(poll!(request).is_pending());
    }
    let started = tokio::time::Instant::now();
    for number in [10, 20] {
        assert!(matches!(hanging(&replica, key(number)).await, Err(FillError::Overloaded)));
    }
    // It is served only if the store cannot be read.
    replica.poll_other_origin(1);
    replica.clock.advance(Duration::from_secs(10));
    assert_eq!(replica.read(key(1), &store).await, version(0));
    assert_eq!(store.reads(), 1);
    assert!(started.elapsed() < Duration::from_millis(500), "at once: {:?}", started.elapsed());
    drop(waiting);
    assert_eq!(replica.read(key(20), &store).await, version(0));
}

#[tokio::test]
async fn lookups_with_variants_leave_lists_their_permits() {
    let server = RedisServer::start(&[]);
    let config = CacheConfig { max_waiting_lists: NonZeroUsize::MIN, ..CacheConfig::default() };
    let replica = Replica::with(server.patient_config(), config).await;
    let mut lookup = pin!(hanging(&replica, CacheKey::extended(b"variants")));
    assert!(poll!(&mut lookup).is_pending());
    assert_eq!(replica.read(CacheKey::list(b""), &Store::default()).await, version(0));
}

#[tokio::test]
async fn body_is_compressed_once_until_it_changes() {
    let server = RedisServer::start(&[]);
    let replica = Replica::patient(&server).await;
    let (store, compressions) = (Store::default(), std::cell::Cell::new(0));
    let gzip = |response: &CachedResponse| {
        let CachedResponse::Found(body) = response else { panic!("a body") };
        let gzip = replica.cache.gzip(&key(1), body, |plain| {
            compressions.set(compressions.get() + 1);
            Some(Representation { bytes: plain.slice(1..), tag: "gzip".into() })
        });
        gzip.unwrap().bytes.len()
    };
    let plain = replica.read(key(1), &store).await;
    let before = replica.cache.stats().bytes;
    gzip(&plain);
    let both = before + (gzip(&plain) + "gzip".len() + size_of::<Representation>()) as u64;
    assert_eq!(replica.cache.stats().bytes, both, "compressed bytes count");
    for _ in 0..10 {
        gzip(&replica.read(key(1), &store).await);
    }
    replica.clock.advance(Duration::from_mins(12));
    replica.read(key(1), &store).await;
    eventually(async || matches!(replica.cache.get_from_memory(&key(1)), MemoryLookup::Fresh(_))).await;
    gzip(&replica.read(key(1), &store).await);
    assert_eq!((store.reads(), compressions.get()), (2, 1), "the body was read again without a change");
    assert_eq!(replica.cache.stats().bytes, both);

    store.update();
    replica.clock.advance(Duration::from_mins(12));
    replica.read(key(1), &store).await;
    eventually(async || replica.cache.get_from_memory(&key(1)) == MemoryLookup::Fresh(version(1))).await;
    gzip(&replica.read(key(1), &store).await);
    assert_eq!(compressions.get(), 2);
}
