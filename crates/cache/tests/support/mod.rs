//! Replicas with real Redis servers, and a store that counts its reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chart_index_cache::{
    Cache, CacheConfig, CacheConnections, CacheKey, CachedResponse, Clock, RecentChanges,
};
use chart_index_domain::{
    CatalogueChange, CataloguePoll, Entity, Lineage, NoteHash, Origin, Position, ReadError,
};
use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConfig, RedisConnection, RedisPool};
use tokio::time::{Instant, sleep};

/// How long a request may wait for Redis, plus a margin for a busy machine.
pub(crate) const MAX_WAIT: Duration = Duration::from_millis(50 + 150);

/// A store with the same version for every key, which counts its reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<StoreState>);

#[derive(Debug, Default)]
struct StoreState {
    reads: AtomicU64,
    version: AtomicU64,
    down: AtomicBool,
}

impl Store {
    /// Reads a response, which takes as long as in a database.
    pub(crate) async fn read(self) -> Result<CachedResponse, ReadError> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let (is_down, number) = (self.0.down.load(Ordering::Relaxed), self.0.version.load(Ordering::Relaxed));
        sleep(Duration::from_millis(5)).await;
        if is_down {
            return Err(ReadError::Unavailable { operation: "read", source: "down".into() });
        }
        Ok(version(number))
    }

    pub(crate) fn update(&self) {
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.0.down.store(down, Ordering::Relaxed);
    }

    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }
}

pub(crate) fn version(number: u64) -> CachedResponse {
    CachedResponse::found(format!("{{\"version\":{number}}}"), &format!("tag-{number}"))
}

/// A replica: a cache with its own connections.
pub(crate) struct Replica {
    pub(crate) cache: Arc<Cache>,
    pub(crate) connections: CacheConnections,
    pub(crate) clock: Clock,
    pub(crate) changes: Arc<RecentChanges>,
}

impl Replica {
    /// A replica that is connected and has polled.
    pub(crate) async fn connected(server: &RedisServer) -> Self {
        Self::with(server.config(), CacheConfig::default()).await
    }

    /// A replica with long timeouts, for tests of what Redis replies, which a slow machine must not fail.
    pub(crate) async fn patient(server: &RedisServer) -> Self {
        Self::with(server.patient_config(), CacheConfig::default()).await
    }

    pub(crate) async fn with(redis: RedisConfig, config: CacheConfig) -> Self {
        let replica = Self::starting(&redis, config);
        for connection in replica.connections() {
            wait_for_state(connection, ConnectionState::Connected).await;
        }
        replica.poll(1, &[]);
        replica
    }

    /// A replica that does not wait for its connections, and has not polled.
    pub(crate) fn starting(redis: &RedisConfig, config: CacheConfig) -> Self {
        let connect = |name| RedisConnection::connect(name, redis).unwrap();
        let pool = RedisPool::new(redis).unwrap();
        let connections = CacheConnections { main: connect("main"), rox: connect("rox"), pool };
        let (clock, changes) = (config.clock.clone(), Arc::new(RecentChanges::new()));
        let config = CacheConfig { changes: Some(Arc::clone(&changes)), ..config };
        let cache = Cache::new(config, connections.clone());
        Self { cache, connections, clock, changes }
    }

    /// Its connections to Redis.
    pub(crate) fn connections(&self) -> [&RedisConnection; 2] {
        [&self.connections.main, &self.connections.rox]
    }

    /// Polls the catalogue, in which these charts have changed.
    pub(crate) fn poll(&self, sequence: u64, charts: &[u64]) {
        apply(&self.changes, polled(ORIGIN, sequence, charts));
    }

    /// Polls the catalogue, from which an operator has removed this chart.
    pub(crate) fn poll_removal(&self, sequence: u64, chart: u64) {
        let removal =
            CatalogueChange { sequence, entity: Entity::Chart(hash(chart)), last_removal: sequence };
        let found =
            CataloguePoll { last_removal: sequence, changes: vec![removal], ..polled(ORIGIN, sequence, &[]) };
        apply(&self.changes, found);
    }

    /// Polls another server of the catalogue: no entry can be shown to be current.
    pub(crate) fn poll_other_origin(&self, sequence: u64) {
        apply(&self.changes, polled(Origin(2), sequence, &[]));
    }

    /// Reads a key through this replica.
    pub(crate) async fn read(&self, key: CacheKey, store: &Store) -> CachedResponse {
        let store = store.clone();
        self.cache.get(key, || store.read()).await.unwrap()
    }
}

/// The server of the catalogue.
pub(crate) const ORIGIN: Origin = Origin(1);

/// A poll in which these charts have changed.
pub(crate) fn polled(origin: Origin, sequence: u64, charts: &[u64]) -> CataloguePoll {
    let changed = |&number: &u64| {
        let entity = Entity::Chart(hash(number));
        CatalogueChange { sequence, entity, last_removal: 0 }
    };
    let charts = charts.iter().map(changed);
    let position = Position { origin, sequence };
    CataloguePoll {
        lineage: Lineage::from_bytes([1; 8]),
        position,
        last_removal: 0,
        changes: charts.collect(),
        complete_after: 0,
    }
}

/// Applies a poll from the future: it is the last one for the rest of the test, however slow that is.
fn apply(changes: &RecentChanges, poll: CataloguePoll) {
    changes.apply(poll, std::time::Instant::now() + Duration::from_hours(1));
}

/// Waits for a condition, and returns how long that took; fails after 20 s.
pub(crate) async fn eventually(condition: impl AsyncFnMut() -> bool) -> Duration {
    let mut condition = condition;
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < Duration::from_secs(20), "the condition is not met");
        sleep(Duration::from_millis(2)).await;
    }
    started.elapsed()
}

pub(crate) fn hash(number: u64) -> NoteHash {
    NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

pub(crate) fn key(number: u64) -> CacheKey {
    CacheKey::lookup(hash(number))
}

/// The key in Redis of the lookup of a chart.
pub(crate) fn redis_key(number: u64) -> String {
    let hash = hash(number);
    hash.as_bytes().iter().fold("ci:1:l:".to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

/// Waits until Redis has this number of records, which are written in the background.
pub(crate) async fn wait_for_records(server: &RedisServer, number: u64) {
    let mut connection = server.connection().await;
    eventually(async || redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap() == number)
        .await;
}

/// The record of chart 1, once it is written.
pub(crate) async fn record(server: &RedisServer) -> Vec<u8> {
    let mut connection = server.connection().await;
    let mut value = Vec::new();
    eventually(async || {
        value = redis::cmd("GET").arg(redis_key(1)).query_async(&mut connection).await.unwrap();
        !value.is_empty()
    })
    .await;
    value
}
