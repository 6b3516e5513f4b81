//! Replicas with real Redis servers, and a store that counts what is asked of it.

use chart_index_redis::testing::{RedisServer, wait_for_state};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chart_index_cache::{Cache, CacheConfig, CacheConnections, CacheKey, CachedResponse, Clock};
use chart_index_domain::NoteHash;
use chart_index_ratelimit::{ClientAddress, Limiter, LimiterConfig};
use chart_index_redis::{ConnectionState, RedisConfig, RedisConnection};
use tokio::time::{Instant, sleep};

/// The most that a request may wait for Redis, and what a busy machine with two cores may add to it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50 + 150);
/// How soon a change is in force everywhere.
pub(crate) const IN_FORCE: Duration = Duration::from_secs(5);

/// The failure of a store.
#[derive(Debug, thiserror::Error)]
#[error("the store is down")]
pub(crate) struct Down;

/// A store with one version of everything, that counts what is asked of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<State>);

#[derive(Debug, Default)]
struct State {
    reads: AtomicU64,
    version: AtomicU64,
    down: AtomicBool,
    removed: AtomicBool,
}

impl Store {
    /// Reads a chart, as long as it takes a database.
    pub(crate) async fn read(self) -> Result<CachedResponse, Down> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let answer = self.present();
        sleep(Duration::from_millis(5)).await;
        answer
    }

    /// What is in the store now.
    pub(crate) fn present(&self) -> Result<CachedResponse, Down> {
        if self.0.down.load(Ordering::Relaxed) {
            return Err(Down);
        }
        if self.0.removed.load(Ordering::Relaxed) {
            return Ok(CachedResponse::NotFound);
        }
        Ok(version(self.0.version.load(Ordering::Relaxed)))
    }

    /// Counts a read that is answered elsewhere.
    pub(crate) fn count(&self) -> u64 {
        self.0.reads.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn update(&self) {
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        self.0.removed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.0.down.store(down, Ordering::Relaxed);
    }

    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }
}

/// The answer of this version of the store.
pub(crate) fn version(number: u64) -> CachedResponse {
    CachedResponse::found(format!("{{\"version\":{number}}}"), &format!("tag-{number}"))
}

/// One replica: a cache with its own connections and limiter.
pub(crate) struct Replica {
    pub(crate) cache: Cache<Down>,
    pub(crate) limiter: Limiter,
    pub(crate) connections: CacheConnections,
    pub(crate) clock: Clock,
}

impl Replica {
    /// A replica that is connected and listens.
    pub(crate) async fn of(server: &RedisServer) -> Self {
        Self::with(server.config(), server, CacheConfig::default()).await
    }

    /// A replica that gives Redis all the time that a busy machine may take: for tests of what Redis says.
    pub(crate) async fn patient(server: &RedisServer) -> Self {
        Self::with(server.patient_config(), server, CacheConfig::default()).await
    }

    pub(crate) async fn with(redis: RedisConfig, server: &RedisServer, config: CacheConfig) -> Self {
        let replica = Self::starting(&redis, server, config);
        for connection in [&replica.connections.main, &replica.connections.rox] {
            wait_for_state(connection, ConnectionState::Connected).await;
        }
        replica.listens().await;
        replica
    }

    /// A replica that does not wait for its connections.
    pub(crate) fn starting(redis: &RedisConfig, server: &RedisServer, config: CacheConfig) -> Self {
        let connect = || RedisConnection::connect(redis.clone()).unwrap();
        let connections = CacheConnections { main: connect(), rox: connect() };
        let clock = config.clock.clone();
        let config = CacheConfig { invalidations: server.config(), ..config };
        let cache = Cache::new(config, connections.clone()).unwrap();
        let limiter = Limiter::new(LimiterConfig::default(), connections.main.clone());
        Self { cache, limiter, connections, clock }
    }

    /// Waits until it hears invalidations.
    pub(crate) async fn listens(&self) {
        eventually(async || self.cache.is_listening()).await;
        // What was kept in the very tick in which listening began is not trusted.
        self.clock.advance(Duration::from_millis(20));
    }

    /// Reads a key from the store behind this replica.
    pub(crate) async fn read(&self, key: CacheKey, store: &Store) -> CachedResponse {
        let store = store.clone();
        self.cache.get_or_fill(key, || store.read()).await.unwrap()
    }
}

/// Waits for something that happens in the background, and fails rather than wait for ever.
pub(crate) async fn eventually(condition: impl AsyncFnMut() -> bool) -> Duration {
    let mut condition = condition;
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not happen");
        sleep(Duration::from_millis(2)).await;
    }
    begun.elapsed()
}

/// A hash of its own for each number.
pub(crate) fn hash(number: u64) -> NoteHash {
    NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

/// A key of its own for each number.
pub(crate) fn key(number: u64) -> CacheKey {
    CacheKey::lookup(hash(number))
}

/// The key in Redis of a chart's lookup answer.
pub(crate) fn redis_key(number: u64) -> String {
    let hash = hash(number);
    hash.as_bytes().iter().fold("ci:1:l:".to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

/// An address of its own for each number.
pub(crate) fn address(number: u32) -> ClientAddress {
    Ipv4Addr::from_bits(number).into()
}

/// A number that Redis tells about itself.
pub(crate) async fn info(server: &RedisServer, section: &str, name: &str) -> u64 {
    let mut connection = server.connection().await;
    let text: String = redis::cmd("INFO").arg(section).query_async(&mut connection).await.unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    found.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// How often a command was called.
pub(crate) async fn calls(server: &RedisServer, command: &str) -> u64 {
    info(server, "commandstats", &format!("cmdstat_{command}:calls=")).await
}
