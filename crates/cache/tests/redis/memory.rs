//! Rate limits beside cached responses that would fill the memory of Redis, whatever its eviction policy.

use std::num::NonZeroU32;
use std::time::Duration;

use chart_index_cache::{CacheConfig, CachedResponse};
use chart_index_ratelimit::{ClientAddress, Group, Limiter, LimiterConfig, Limits};
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::support::{Replica, eventually, key};

const LIMIT: u32 = 240;
const CLIENTS: u32 = 10;
/// Together three times `maxmemory`.
const RESPONSES: u64 = 24_000;
const RESPONSE_BYTES: usize = 2_000;
const MAX_MEMORY: u64 = 16 << 20;

/// Caches these responses, and waits until Redis has been asked for its memory again.
async fn fill(replicas: &[Replica], numbers: std::ops::Range<u64>) {
    for number in numbers {
        let replica = &replicas[usize::try_from(number).unwrap() % replicas.len()];
        let body = || async { Ok(CachedResponse::found(vec![b'x'; RESPONSE_BYTES], "tag")) };
        replica.cache.get(key(number), body).await.unwrap();
        if number % 500 == 0 {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Sends this many requests of each client, to the replicas in turn. Returns how many are admitted.
async fn send(limiters: &[Limiter], requests: u32) -> Vec<usize> {
    let client = |client: u32| async move {
        let mut admitted = 0;
        for number in 0..requests {
            let address = ClientAddress::from(std::net::Ipv4Addr::from_bits(client));
            let limiter = &limiters[number as usize % limiters.len()];
            admitted += usize::from(limiter.check(Group::List, address).await.is_ok());
        }
        admitted
    };
    join_all((0..CLIENTS).map(client)).await
}

/// A number in the reply to `INFO`.
fn info(server: &RedisServer, name: &str) -> u64 {
    let found = server.cli(&["INFO"]).lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    found.unwrap().trim().parse().unwrap()
}

async fn check(policy: &str) {
    let server = RedisServer::start(&["--maxmemory", "16mb", "--maxmemory-policy", policy]);
    let replica = || Replica::with(server.patient_config(), CacheConfig::default());
    let replicas = [replica().await, replica().await];
    let limits = Limits::all(NonZeroU32::new(LIMIT).unwrap());
    let limiter = |replica: &Replica| {
        let config = LimiterConfig { limits, ..LimiterConfig::default() };
        Limiter::new(config, replica.connections.main.clone())
    };
    let limiters: Vec<_> = replicas.iter().map(limiter).collect();
    fill(&replicas, 0..RESPONSES / 2).await;
    let mut admitted = send(&limiters, 200).await;
    fill(&replicas, RESPONSES / 2..RESPONSES).await;
    for (admitted, more) in admitted.iter_mut().zip(send(&limiters, 200).await) {
        *admitted += more;
    }
    assert_eq!(admitted, [LIMIT as usize; CLIENTS as usize], "{policy}");
    let dropped = || replicas.iter().map(|replica| replica.cache.stats().dropped_writes).sum::<u64>();
    eventually(async || dropped() > RESPONSES / 4).await;
    let used = info(&server, "used_memory:");
    assert!((MAX_MEMORY / 4..MAX_MEMORY * 5 / 8).contains(&used), "{policy}: {used} bytes");
    assert_eq!(info(&server, "evicted_keys:"), 0, "{policy}");
    let local: u64 = limiters.iter().map(|limiter| limiter.counts().by_local_window).sum();
    assert_eq!(local, 0, "{policy}: Redis decides");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_that_would_fill_redis_leave_limits_exact() {
    join_all(["noeviction", "allkeys-lru", "volatile-ttl", "allkeys-lfu"].map(check)).await;
}
