//! One multiplexed connection against a pool: `cargo bench -p chart-index-ratelimit --bench connections`.
//!
//! 64 requests at a time each send one `GET` of a value of 700 bytes to a Redis of the benchmark's own: over the link of
//! the hot path, and over `deadpool-redis` with 16 connections, which asks each connection for a sign of life
//! (`UNWATCH`, `PING`) before its use. Both in one run, by turns, five times; the medians count. Processor time is that
//! of this process and of the Redis process, user and system, for one request.
//!
//! The numbers of the last recorded run are in `runs/`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may fail")]

use std::time::{Duration, Instant};

use chart_index_ratelimit::redis_link::{LinkState, RedisEndpoint, RedisLink, RedisLinkConfig};
use chart_index_tests::PrivateRedis;
use deadpool_redis::{Manager, Pool, Runtime};

const TASKS: usize = 64;
const REQUESTS: usize = 100_000;
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;

/// What one request cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    per_second: f64,
    client_us: f64,
    redis_us: f64,
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let redis = PrivateRedis::start(&[]);
    redis.cli(&["SET", "key", &"x".repeat(700)]);
    let config = RedisLinkConfig {
        request_timeout: Duration::from_secs(20),
        ..RedisLinkConfig::new(RedisEndpoint::Single(redis.url().parse().unwrap()))
    };
    let link = RedisLink::connect(config).unwrap();
    link.reached(LinkState::Up).await;
    let pool = Pool::builder(Manager::new(redis.url()).unwrap())
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .build()
        .unwrap();

    let (mut over_link, mut over_pool) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let link = link.clone();
        over_link.push(measure(&redis, move || get_over_link(link.clone())).await);
        let pool = pool.clone();
        over_pool.push(measure(&redis, move || get_over_pool(pool.clone())).await);
    }
    println!("{:<14}{:>12}{:>16}{:>16}", "", "requests/s", "client us", "redis us");
    for (name, costs) in [("multiplexed", over_link), ("deadpool", over_pool)] {
        let of = |field: fn(&Cost) -> f64| median(costs.iter().map(field).collect());
        let (rate, client, server) = (of(|c| c.per_second), of(|c| c.client_us), of(|c| c.redis_us));
        println!("{name:<14}{rate:>12.0}{client:>16.1}{server:>16.1}");
    }
}

async fn get_over_link(link: RedisLink) {
    link.run(redis::cmd("GET").arg("key"), link.deadline()).await.unwrap();
}

async fn get_over_pool(pool: Pool) {
    let mut connection = pool.get().await.unwrap();
    let _: Vec<u8> = redis::cmd("GET").arg("key").query_async(&mut connection).await.unwrap();
}

async fn measure<F, Fut>(redis: &PrivateRedis, request: F) -> Cost
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (began, client, server) = (Instant::now(), processor_us("self"), processor_us(&redis.process_id()));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let request = request.clone();
            tokio::spawn(async move {
                for _ in 0..REQUESTS / TASKS {
                    request().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let requests = f64::from(u32::try_from(REQUESTS).unwrap());
    Cost {
        per_second: requests / began.elapsed().as_secs_f64(),
        client_us: (processor_us("self") - client) / requests,
        redis_us: (processor_us(&redis.process_id()) - server) / requests,
    }
}

/// The processor time of a process so far in microseconds: fields 14 and 15 of its `stat`, in hundredths of a second.
fn processor_us(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() * 10_000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
