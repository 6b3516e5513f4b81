//! A Redis that evicts: cached responses fill its memory while clients are limited.

use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Group, Limiter};
use chart_index_redis::testing::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Value};
use tokio::time::{Instant, sleep_until};

/// The bytes of a cached response, and the number of different ones that are requested.
const RESPONSE_BYTES: usize = 2_000;
const RESPONSES: f64 = 200_000.0;
/// A cached list expires after an hour.
const RESPONSE_TTL_MS: u64 = 3_600_000;
/// The interval of a batch of requests. Short, because nothing is evicted between two batches of inserts: a
/// window that has just begun, and is a candidate for eviction, would meanwhile count many admissions, which
/// are lost with it.
const BATCH: Duration = Duration::from_millis(2);

/// A server with 16 MB at most and this eviction policy.
pub(crate) fn server(policy: &str) -> RedisServer {
    RedisServer::start(&["--maxmemory", "16mb", "--maxmemory-policy", policy])
}

/// Replicas that share a cache: they read responses, and insert those that are missing.
#[derive(Debug)]
pub(crate) struct Cache {
    connection: MultiplexedConnection,
    random: fastrand::Rng,
    response: Vec<u8>,
    pub(crate) reads: usize,
    pub(crate) hits: usize,
}

impl Cache {
    pub(crate) async fn connect(server: &RedisServer) -> Self {
        Self {
            connection: server.connection().await,
            random: fastrand::Rng::with_seed(1),
            response: vec![b'x'; RESPONSE_BYTES],
            reads: 0,
            hits: 0,
        }
    }

    /// Reads responses by Zipf's law.
    pub(crate) async fn read(&mut self, count: usize) {
        let mut key = || format!("ci:1:l:{}", RESPONSES.powf(self.random.f64()).floor());
        let keys: Vec<_> = (0..count).map(|_| key()).collect();
        let (mut reads, mut inserts) = (Pipeline::new(), Pipeline::new());
        for key in &keys {
            reads.cmd("GET").arg(key);
        }
        let replies: Vec<Value> = reads.query_async(&mut self.connection).await.unwrap();
        self.reads += count;
        for (key, reply) in keys.iter().zip(replies) {
            if reply == Value::Nil {
                inserts.cmd("SET").arg(key).arg(&self.response).arg("PX").arg(RESPONSE_TTL_MS).ignore();
            } else {
                self.hits += 1;
            }
        }
        // A server that does not evict refuses this while it is full.
        let _ = inserts.query_async::<()>(&mut self.connection).await;
    }

    /// Reads responses at a rate.
    pub(crate) async fn read_until(&mut self, reads_per_second: usize, until: Instant) {
        let batches_per_second = 1_000 / usize::try_from(BATCH.as_millis()).unwrap();
        let mut next = Instant::now();
        while next < until {
            self.read(reads_per_second.div_ceil(batches_per_second)).await;
            next += BATCH;
            sleep_until(next).await;
        }
    }
}

/// A client that sends its requests to replicas in turn.
#[derive(Debug)]
pub(crate) struct Client {
    address: ClientAddress,
    sent: usize,
    /// When the admitted requests were sent.
    pub(crate) admitted: Vec<Instant>,
}

impl Client {
    pub(crate) const fn new(address: ClientAddress) -> Self {
        Self { address, sent: 0, admitted: Vec::new() }
    }

    pub(crate) async fn send(&mut self, replicas: &[Limiter]) {
        let at = Instant::now();
        if replicas[self.sent % replicas.len()].check(Group::List, self.address).await.is_ok() {
            self.admitted.push(at);
        }
        self.sent += 1;
    }
}

/// The largest number of admissions within a window.
pub(crate) fn most_in(window: Duration, admitted: &[Instant]) -> usize {
    let mut first = 0;
    let counts = admitted.iter().enumerate().map(|(last, at)| {
        while admitted[first] + window <= *at {
            first += 1;
        }
        last - first + 1
    });
    counts.max().unwrap_or(0)
}
