//! Redis killed, frozen and full.

use std::time::Duration;

use chart_index_system_tests::Connection;
use chart_index_tests::within;

use super::report::Drill;
use super::site::{self, LIMIT, REPLICAS, Site, TIMEOUT, UNSHARED};

/// Lua: writes ARGV[1] values of ARGV[2] bytes, with keys that no other call has.
const FILL: &str = "local time, value = redis.call('TIME'), string.rep('x', ARGV[2]) \
    for i = 1, ARGV[1] do redis.call('SET', 'filler:' .. time[1] .. ':' .. time[2] .. ':' .. i, value) end";

#[test]
#[ignore = "takes minutes: make test-full"]
fn long_outages_of_redis_fail_no_request() {
    site::run(async |site| outages(&site, 300, 12_000).await);
}

/// Kills, freezes and fills Redis. Each outage lasts for this many requests.
async fn outages(site: &Site, rate: u32, requests: u64) {
    let mut drill = Drill::start(site.load(rate).start());
    drill.wait_for_requests(requests).await;
    assert_eq!(site.admitted(1).await, LIMIT, "the replicas share the limit");
    kill(site, &mut drill, requests).await;
    freeze(site, &mut drill, requests).await;
    exceed(site, &mut drill, requests).await;
    let report = drill.finish("Outages of Redis");
    assert_eq!(report.failed(""), 0, "no response needs Redis");
}

async fn kill(site: &Site, drill: &mut Drill, requests: u64) {
    drill.begin_phase("killed");
    site.project.kill("redis");
    drill.wait_for_requests(requests).await;
    assert_unshared(site, 2, "killed").await;
    drill.begin_phase("restarted");
    site.project.start("redis").await;
    wait_for_connections(site, drill).await;
    assert_eq!(site.admitted(3).await, LIMIT, "restarted: the replicas share the limit");
}

async fn freeze(site: &Site, drill: &mut Drill, requests: u64) {
    drill.begin_phase("frozen");
    site.project.freeze("redis");
    drill.wait_for_requests(requests).await;
    assert_unshared(site, 4, "frozen").await;
    drill.begin_phase("thawed");
    site.project.thaw("redis");
    wait_for_connections(site, drill).await;
    assert_eq!(site.admitted(5).await, LIMIT, "thawed: the replicas share the limit");
}

/// Fills Redis beyond its limit, so that it refuses every write.
async fn exceed(site: &Site, drill: &mut Drill, requests: u64) {
    drill.begin_phase("full");
    let max_memory = site.redis(&["CONFIG", "GET", "maxmemory"]);
    fill(site);
    // Half of what is used: Redis stays above its limit when windows expire or buffers of its clients shrink.
    set_max_memory(site, &(info(site, "used_memory:") / 2).to_string());
    let refused = info(site, "errorstat_OOM:count=");
    drill.wait_for_requests(requests).await;
    assert_unshared(site, 6, "full").await;
    let refused = info(site, "errorstat_OOM:count=") - refused;
    println!("full: {refused} commands failed");
    assert!(refused > 0, "Redis refuses to write");
    drill.begin_phase("emptied");
    site.redis(&["FLUSHALL"]);
    set_max_memory(site, max_memory.lines().last().expect("a value"));
    wait_for_connections(site, drill).await;
    drill.wait_for_requests(requests).await;
    assert_eq!(site.admitted(7).await, LIMIT, "emptied: the replicas share the limit");
}

fn set_max_memory(site: &Site, value: &str) {
    assert_eq!(site.redis(&["CONFIG", "SET", "maxmemory", value]).trim(), "OK");
}

/// Asserts that each replica limits on its own.
async fn assert_unshared(site: &Site, client: u16, state: &str) {
    let admitted = site.admitted(client).await;
    println!("{state}: a client was admitted {admitted} times");
    assert!(UNSHARED.contains(&admitted), "{state}: each replica has its own limit");
}

/// Waits until every replica is connected to Redis.
async fn wait_for_connections(site: &Site, drill: &mut Drill) {
    for replica in REPLICAS {
        within(TIMEOUT, async || site.is_one(replica, "chart_index_redis_connected").await.then_some(()))
            .await;
    }
    drill.record_recovery();
}

/// Fills Redis with values that no one reads, until it is at its limit.
fn fill(site: &Site) {
    // Small values last: they fill what is left.
    for (bytes, total) in [(10_000, info(site, "maxmemory:")), (100, 2_000_000)] {
        let [repeat, batch, bytes] = [total / 1_000_000 + 1, 1_000_000 / bytes, bytes].map(|n| n.to_string());
        site.redis(&["-r", &repeat, "EVAL", FILL, "0", &batch, &bytes]);
    }
}

/// A number of `INFO`; 0 if `INFO` does not have it.
fn info(site: &Site, name: &str) -> u64 {
    let info = site.redis(&["INFO", "everything"]);
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.split(',').next()?.trim().parse().ok());
    value.unwrap_or_default()
}

#[test]
#[ignore = "takes minutes: make test-full"]
fn long_partitions_from_redis_fail_no_request() {
    site::run(async |site| {
        for (client, replica) in (1..).step_by(2).zip([REPLICAS, REPLICAS].concat()) {
            partition(&site, replica, 300, client).await;
        }
    });
}

/// How long a replica is separated from Redis.
const PARTITION: Duration = Duration::from_secs(30);

/// A removal is in force everywhere within this time, with or without Redis.
const REMOVAL: Duration = Duration::from_secs(5);

/// Loses all packets between a replica and Redis. Meanwhile a chart is removed. Two clients, from this one on,
/// use up their limits.
async fn partition(site: &Site, replica: &str, rate: u32, client: u16) {
    let mut drill = Drill::start(site.load(rate).start());
    drill.wait_for_requests(u64::from(rate) * 5).await;
    assert_eq!(site.project.connect(replica, "redis", 6379), Connection::Open);
    drill.begin_phase("partitioned");
    site.project.partition([replica, "redis"]);
    assert_eq!(site.project.connect(replica, "redis", 6379), Connection::Silent);
    assert_eq!(site.project.connect(replica, "postgres", 5432), Connection::Open);
    let end = tokio::time::Instant::now() + PARTITION;
    drill.wait_for_requests(u64::from(rate) * 5).await;
    let admitted = site.admitted_lookups(client).await;
    println!("a client was admitted {admitted} times");
    assert!(UNSHARED.contains(&admitted), "the replica has a limit of its own");
    removal(site).await;
    tokio::time::sleep_until(end).await;
    drill.begin_phase("healed");
    site.project.heal([replica, "redis"]);
    wait_for_connections(site, &mut drill).await;
    assert_eq!(site.admitted_lookups(client + 1).await, LIMIT, "the replicas share the limit");
    restore(site).await;
    let report = drill.finish("Partition of a replica from Redis");
    assert_eq!(report.failed(""), 0, "no response needs Redis");
    let p99 = report.latency("partitioned", 990);
    assert!(
        p99 < Duration::from_millis(500),
        "requests wait for Redis only until it is known to be unavailable: {p99:?}"
    );
}

/// Removes a chart that both replicas have in their caches, and waits until both say that it is unknown.
async fn removal(site: &Site) {
    let chart = &site.removable;
    for replica in REPLICAS {
        for _ in 0..2 {
            assert_eq!(site.status_of(replica, chart).await, "known", "{replica}");
        }
    }
    site.project.run_once("ingest", &["remove", "chart", chart]);
    let start = tokio::time::Instant::now();
    for replica in REPLICAS {
        within(TIMEOUT, async || (site.status_of(replica, chart).await == "unknown").then_some(())).await;
        let elapsed = start.elapsed();
        println!("removal in force on {replica} {elapsed:.1?} after the command has ended");
        assert!(elapsed < REMOVAL, "{replica}: {elapsed:?}");
    }
}

/// Restores the chart, so that it can be removed again.
async fn restore(site: &Site) {
    site.project.run_once("ingest", &["restore", "chart", &site.removable]);
    for replica in REPLICAS {
        let known = async || (site.status_of(replica, &site.removable).await == "known").then_some(());
        within(TIMEOUT, known).await;
    }
}
