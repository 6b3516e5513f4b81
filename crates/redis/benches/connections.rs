//! A [`RedisConnection`] compared with a pool: `cargo bench -p chart-index-redis --bench connections`.
//!
//! 64 tasks each send `GET` commands for a value of 700 bytes to a Redis server of the benchmark's own: over a
//! `RedisConnection`, and over `deadpool-redis` with 16 connections, which it pings (`UNWATCH`, `PING`) before each
//! use. Both take turns five times; the result is the median. CPU time is user and system time per request, of this
//! process and of the Redis process.
//!
//! The last recorded run is in `runs/`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may fail")]

use std::time::Instant;

use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConnection};
use deadpool_redis::{Manager, Pool, Runtime};

const TASKS: usize = 64;
const REQUESTS: usize = 100_000;
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;

/// The cost of one request.
#[derive(Clone, Copy, Default)]
struct Cost {
    per_second: f64,
    client_us: f64,
    redis_us: f64,
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let redis = RedisServer::start(&[]);
    redis.cli(&["SET", "key", &"x".repeat(700)]);
    let connection = RedisConnection::connect("main", redis.patient_config()).unwrap();
    wait_for_state(&connection, ConnectionState::Connected).await;
    let pool = Pool::builder(Manager::new(redis.url()).unwrap())
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .build()
        .unwrap();

    let (mut multiplexed, mut pooled) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let connection = connection.clone();
        multiplexed.push(measure(&redis, move || get_multiplexed(connection.clone())).await);
        let pool = pool.clone();
        pooled.push(measure(&redis, move || get_pooled(pool.clone())).await);
    }
    println!("{:<14}{:>12}{:>16}{:>16}", "", "requests/s", "client us", "redis us");
    for (name, costs) in [("multiplexed", multiplexed), ("deadpool", pooled)] {
        let of = |field: fn(&Cost) -> f64| median(costs.iter().map(field).collect());
        let (rate, client, server) = (of(|c| c.per_second), of(|c| c.client_us), of(|c| c.redis_us));
        println!("{name:<14}{rate:>12.0}{client:>16.1}{server:>16.1}");
    }
}

async fn get_multiplexed(connection: RedisConnection) {
    connection.run(redis::cmd("GET").arg("key"), connection.deadline()).await.unwrap();
}

async fn get_pooled(pool: Pool) {
    let mut connection = pool.get().await.unwrap();
    let _: Vec<u8> = redis::cmd("GET").arg("key").query_async(&mut connection).await.unwrap();
}

async fn measure<F, Fut>(redis: &RedisServer, request: F) -> Cost
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (started, client, server) = (Instant::now(), cpu_us("self"), cpu_us(&redis.process_id()));
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
        per_second: requests / started.elapsed().as_secs_f64(),
        client_us: (cpu_us("self") - client) / requests,
        redis_us: (cpu_us(&redis.process_id()) - server) / requests,
    }
}

/// The CPU time of a process in microseconds: fields 14 and 15 of `/proc/<process>/stat`, in hundredths of a second.
fn cpu_us(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() * 10_000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
