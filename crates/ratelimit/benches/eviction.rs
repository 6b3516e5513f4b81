//! Compares eviction policies of Redis by what a full cache in the same server does to rate limits.
//!
//! `cargo bench -p chart-index-ratelimit --bench eviction` starts Redis servers of its own, one for each policy, with 16 MB.
//! Reads of a cache at a rate fill them, and every miss is inserted; two replicas limit clients to 240 requests in 60 s. It
//! prints the most admissions of a client in any 60 s, as the mean and the maximum over the clients of a pattern; the hits of
//! the cache; and how many markers of invalidated responses are there 10 s later.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::unwrap_used, reason = "a benchmark ends where its servers fail")]

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the module is that of the tests")]
mod support;

use std::fmt::Write;
use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Limiter};
use chart_index_redis::testing::RedisServer;
use futures_util::future::join_all;
use redis::Pipeline;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::support::eviction::{Cache, Client, most_in, server};
use crate::support::{address, config, replica};

const POLICIES: [&str; 6] =
    ["allkeys-lru", "volatile-lru", "allkeys-lfu", "volatile-lfu", "volatile-ttl", "noeviction"];
/// Reads of the cache per second.
const READS: [usize; 3] = [6_000, 1_500, 500];
const WINDOW: Duration = Duration::from_mins(1);
const LIMIT: u32 = 240;
const DURATION: Duration = Duration::from_secs(125);
const CLIENTS: u32 = 10;

/// How a client sends its requests.
#[derive(Debug, Clone, Copy)]
struct Pattern {
    /// The requests of a burst.
    burst: u32,
    /// The time between two bursts in which it is idle.
    idle: Duration,
}

fn patterns() -> Vec<(String, Pattern)> {
    let busy = Pattern { burst: 1, idle: Duration::from_millis(125) };
    let idle = [1, 5, 20, 50]
        .map(|seconds| (format!("{seconds} s"), Pattern { burst: 200, idle: Duration::from_secs(seconds) }));
    [("busy".to_owned(), busy)].into_iter().chain(idle).collect()
}

fn main() {
    Runtime::new().unwrap().block_on(async {
        for reads in READS {
            println!(
                "\n{reads} reads per second: most admissions in 60 s, mean (maximum) of {CLIENTS} clients"
            );
            let mut names = String::new();
            for (name, _) in patterns() {
                write!(names, "{name:>13}").unwrap();
            }
            println!(
                "{:<14}{names} | {:>7} {:>9} {:>9} {:>10}",
                "policy", "hits", "markers", "evictions", "by replica"
            );
            for row in join_all(POLICIES.map(|policy| measure(policy, reads))).await {
                println!("{row}");
            }
        }
    });
}

async fn measure(policy: &str, reads: usize) -> String {
    let server = server(policy);
    let config = config(LIMIT, WINDOW, "rl2:");
    let replicas = join_all((0..2).map(|_| replica(&config, server.patient_config()))).await;
    // The memory is full before the measurement begins.
    let mut cache = Cache::connect(&server).await;
    cache.read_until(10_000, Instant::now() + Duration::from_secs(4)).await;
    (cache.reads, cache.hits) = (0, 0);
    let (until, evicted) = (Instant::now() + DURATION, evictions(&server));
    let clients = patterns().into_iter().enumerate().map(|(number, (_, pattern))| {
        let number = u32::try_from(number).unwrap();
        let clients = (0..CLIENTS).map(move |client| address(CLIENTS * number + client));
        let clients = clients.map(|client| send_until(client, &replicas, pattern, until));
        join_all(clients.collect::<Vec<_>>())
    });
    let ((), markers, admitted) = tokio::join!(
        cache.read_until(reads, until),
        keep_markers(&server, until),
        join_all(clients.collect::<Vec<_>>())
    );
    let mut row = format!("{policy:<14}");
    for clients in admitted {
        let most: Vec<_> = clients.iter().map(|admitted| most_in(WINDOW, admitted)).collect();
        let mean = most.iter().sum::<usize>() / most.len();
        write!(row, "{:>13}", format!("{mean} ({})", most.iter().max().unwrap())).unwrap();
    }
    let evicted = evictions(&server) - evicted;
    let by_replica: u64 = replicas.iter().map(|replica| replica.counts().by_local_window).sum();
    row + &format!(" | {:>5} % {markers:>7} % {evicted:>9} {by_replica:>10}", 100 * cache.hits / cache.reads)
}

/// Sends the requests of a client. Returns when the admitted ones were sent.
async fn send_until(
    client: ClientAddress,
    replicas: &[Limiter],
    pattern: Pattern,
    until: Instant,
) -> Vec<Instant> {
    let mut client = Client::new(client);
    while Instant::now() < until {
        for _ in 0..pattern.burst {
            client.send(replicas).await;
        }
        sleep(pattern.idle).await;
    }
    client.admitted
}

/// Writes keys like those that mark invalidated responses, and returns the share that is there 10 s later, in percent.
async fn keep_markers(server: &RedisServer, until: Instant) -> usize {
    const MARKERS: usize = 100;
    let mut connection = server.connection().await;
    let (mut written, mut kept) = (0, 0);
    while Instant::now() < until {
        let (mut writes, mut reads) = (Pipeline::new(), Pipeline::new());
        for number in written..written + MARKERS {
            let key = format!("ci:1:c:{number}");
            writes.cmd("SET").arg(&key).arg("marker").arg("PX").arg(30_000).ignore();
            reads.cmd("EXISTS").arg(&key);
        }
        let _ = writes.query_async::<()>(&mut connection).await;
        sleep(Duration::from_secs(10)).await;
        let found: Vec<usize> = reads.query_async(&mut connection).await.unwrap();
        written += MARKERS;
        kept += found.iter().sum::<usize>();
    }
    100 * kept / written
}

fn evictions(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "stats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("evicted_keys:"));
    line.unwrap().trim().parse().unwrap()
}
