//! A Redis that evicts: cached responses fill its memory while clients are limited.

use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Group, Limiter};
use chart_index_redis::testing::RedisServer;
use redis::{Pipeline, Value};
use tokio::time::{Instant, sleep, sleep_until};

/// The bytes of a cached response, and the number of different ones that are requested.
const RESPONSE_BYTES: usize = 2_000;
const RESPONSES: f64 = 200_000.0;
/// A cached list expires after an hour.
const RESPONSE_TTL_MS: u64 = 3_600_000;
/// The interval of a batch of requests. Short, because nothing is evicted between two batches of inserts: a window that has just
/// begun, and is a candidate for eviction, would meanwhile count many admissions, which are lost with it.
const BATCH: Duration = Duration::from_millis(2);

/// How a client sends its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    /// The requests of a burst.
    pub(crate) burst: u32,
    /// The time between two bursts in which it is idle.
    pub(crate) idle: Duration,
}

/// What the cache did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CacheUse {
    pub(crate) reads: usize,
    pub(crate) hits: usize,
}

/// A server with 16 MB at most and this eviction policy.
pub(crate) fn server(policy: &str) -> RedisServer {
    RedisServer::start(&["--maxmemory", "16mb", "--maxmemory-policy", policy])
}

/// Reads responses at a rate and inserts those that are missing, like replicas with a shared cache. Which ones follows
/// Zipf's law.
pub(crate) async fn use_cache(server: &RedisServer, reads_per_second: usize, until: Instant) -> CacheUse {
    let mut connection = server.connection().await;
    let (mut random, mut used) = (fastrand::Rng::with_seed(1), CacheUse::default());
    let response = vec![b'x'; RESPONSE_BYTES];
    let batches_per_second = 1_000 / usize::try_from(BATCH.as_millis()).unwrap();
    let mut next = Instant::now();
    while next < until {
        let key = |random: &mut fastrand::Rng| format!("ci:1:l:{}", RESPONSES.powf(random.f64()).floor());
        let keys: Vec<_> =
            (0..reads_per_second.div_ceil(batches_per_second)).map(|_| key(&mut random)).collect();
        let (mut reads, mut inserts) = (Pipeline::new(), Pipeline::new());
        for key in &keys {
            reads.cmd("GET").arg(key);
        }
        let replies: Vec<Value> = reads.query_async(&mut connection).await.unwrap();
        used.reads += keys.len();
        for (key, reply) in keys.iter().zip(replies) {
            if reply == Value::Nil {
                inserts.cmd("SET").arg(key).arg(&response).arg("PX").arg(RESPONSE_TTL_MS).ignore();
            } else {
                used.hits += 1;
            }
        }
        // A server that does not evict refuses this while it is full.
        let _ = inserts.query_async::<()>(&mut connection).await;
        next += BATCH;
        sleep_until(next).await;
    }
    used
}

/// Sends the requests of a client to the replicas in turn. Returns when the admitted ones were sent.
pub(crate) async fn send(
    replicas: &[Limiter],
    client: ClientAddress,
    pattern: Pattern,
    until: Instant,
) -> Vec<Instant> {
    let (mut admitted, mut turn) = (Vec::new(), replicas.iter().cycle());
    while Instant::now() < until {
        for _ in 0..pattern.burst {
            let at = Instant::now();
            if turn.next().unwrap().check(Group::List, client).await.is_admitted() {
                admitted.push(at);
            }
        }
        sleep(pattern.idle).await;
    }
    admitted
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
