//! Memory of a replica and of its cached entries, and of Redis.

use std::fmt::Display;
use std::net::Ipv6Addr;

use anyhow::{Context, Result};
use chart_index_tests::{OtlpReceiver, PrivateRedis};
use fastrand::Rng;
use serde::Serialize;

use crate::Effort;
use crate::catalogue::{Catalogue, Database};
use crate::client::send_each;
use crate::lists::QUERIES;
use crate::replica::{Replica, ReplicaOptions};
use crate::requests::{Distribution, client, get, lookup, unknown_hash};
use chart_index_benchmarks::processes::ResidentMemory;

/// Different lookups of a load, more than the cache of a replica holds.
const LOOKUPS: usize = 200_000;
/// Requests of an address, and how many addresses send as many for the measurement of their windows.
const ADMISSIONS: [(u32, u32); 3] = [(1, 20_000), (10, 4_000), (240, 400)];
const ENTRIES: u32 = 20_000;
/// Most of the known charts that the default cache of a replica holds.
const KNOWN_ENTRIES: usize = 40_000;
/// The keys of the cache and of the limiter in Redis.
const CACHE_PREFIX: &str = "ci:";
const WINDOW_PREFIX: &str = "rl2:";

/// Resident memory of a replica with the telemetry on, in bytes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ReplicaMemory {
    pub(crate) charts: usize,
    pub(crate) started: u64,
    /// After lookups with a Zipf distribution, and lists.
    pub(crate) served: u64,
    /// After uniformly distributed lookups and unknown hashes, which fill the cache.
    pub(crate) full: u64,
    pub(crate) peak: u64,
    /// The bytes that the cache counts at the end, and its entries.
    pub(crate) cache_bytes: f64,
    pub(crate) cache_entries: f64,
}

/// Measures the memory of a replica that pushes traces and metrics, with the default size of its cache.
pub(crate) async fn replica(
    catalogue: &Catalogue,
    database: &Database,
    effort: Effort,
) -> Result<ReplicaMemory> {
    let (collector, mut random) = (OtlpReceiver::start(), Rng::with_seed(2));
    let options = ReplicaOptions {
        redis: true,
        meilisearch: true,
        variables: &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())],
        ..ReplicaOptions::default()
    };
    let replica = Replica::start(catalogue, database, options);
    let resident = || ResidentMemory::of(replica.service.process_id());
    let started = resident()?.now;
    let load = |requests: &[String], loads: u32| {
        replica.wrk(16, effort.seconds_of(loads)).run(requests)?.successful()
    };
    load(&Distribution::Zipf.lookups(&database.hashes, LOOKUPS, &mut random), 6)?;
    load(&lists(&mut random), 2)?;
    let served = resident()?.now;
    load(&Distribution::Uniform.lookups(&database.hashes, LOOKUPS, &mut random), 12)?;
    load(&unknown(&mut random), 12)?;
    Ok(ReplicaMemory {
        charts: database.hashes.len(),
        started,
        served,
        full: resident()?.now,
        peak: resident()?.peak,
        cache_bytes: replica.metric("chart_index_cache_size_bytes").await?,
        cache_entries: replica.metric("chart_index_cache_entries").await?,
    })
}

/// Lists as browsers request them.
fn lists(random: &mut Rng) -> Vec<String> {
    let gzip = "Accept-Encoding: gzip, deflate, br\r\n";
    let paths = QUERIES.iter().cycle().take(QUERIES.len() * 400);
    paths.map(|query| get(&format!("/api/chartsets?{query}"), gzip, random)).collect()
}

fn unknown(random: &mut Rng) -> Vec<String> {
    (0..LOOKUPS)
        .map(|_| {
            let hash = unknown_hash(random);
            lookup(&hash, random)
        })
        .collect()
}

/// Bytes of resident memory per cached lookup.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EntryMemory {
    pub(crate) known: f64,
    pub(crate) unknown: f64,
}

/// Measures by how much the memory of a replica grows with the entries of its cache, up to nearly its default size.
pub(crate) async fn entries(
    catalogue: &Catalogue,
    database: &Database,
    effort: Effort,
) -> Result<EntryMemory> {
    let mut random = Rng::with_seed(3);
    let options = ReplicaOptions { redis: true, ..ReplicaOptions::default() };
    let replica = Replica::start(catalogue, database, options);
    replica
        .wrk(16, effort.seconds)
        .run(&Distribution::Hot.lookups(&database.hashes, 1_000, &mut random))?
        .successful()?;
    let grow = async |requests: &[String]| -> Result<f64> {
        let before = memory_and_entries(&replica).await?;
        replica.wrk(16, effort.seconds_of(8)).run(requests)?.successful()?;
        let after = memory_and_entries(&replica).await?;
        Ok((after.0 - before.0) / (after.1 - before.1))
    };
    let known: Vec<_> =
        database.hashes.iter().take(KNOWN_ENTRIES).map(|hash| lookup(hash, &mut random)).collect();
    Ok(EntryMemory { known: grow(&known).await?, unknown: grow(&unknown(&mut random)).await? })
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a process")]
async fn memory_and_entries(replica: &Replica<'_>) -> Result<(f64, f64)> {
    let bytes = ResidentMemory::of(replica.service.process_id())?.now;
    Ok((bytes as f64, replica.metric("chart_index_cache_entries").await?))
}

/// Bytes of Redis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RedisMemory {
    /// The requests of an address within a window, and the bytes of an IPv4 address and of an IPv6 /64 in a /48 of its
    /// own.
    pub(crate) addresses: Vec<(u32, f64, f64)>,
    /// The bytes of a cached lookup.
    pub(crate) entry: f64,
}

/// Measures the memory of Redis by its keys.
pub(crate) async fn redis(catalogue: &Catalogue, database: &Database, effort: Effort) -> Result<RedisMemory> {
    let options = ReplicaOptions { redis: true, ..ReplicaOptions::default() };
    let replica = Replica::start(catalogue, database, options);
    let mut addresses = Vec::new();
    for (admissions, count) in ADMISSIONS {
        let count = effort.part_of(count);
        let ipv4 = per_address(&replica, database, admissions, (0..count).map(client).collect()).await?;
        let ipv6 = per_address(&replica, database, admissions, (0..count).map(site).collect()).await?;
        addresses.push((admissions, ipv4, ipv6));
    }
    Ok(RedisMemory { addresses, entry: per_entry(&replica, database, effort).await? })
}

/// An IPv6 address in a /48 of its own.
fn site(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x2001_0000_0000 + u128::from(number)) << 80)
}

async fn per_address<C: Display + Send + Clone + 'static>(
    replica: &Replica<'_>,
    database: &Database,
    admissions: u32,
    clients: Vec<C>,
) -> Result<f64> {
    let (redis, path) = (redis_of(replica)?, format!("/api/charts/{}", database.hashes[0]));
    redis.cli(&["FLUSHALL"]);
    let count = f64::from(u32::try_from(clients.len())?);
    let requests = (0..admissions).flat_map(move |_| clients.clone());
    send_each(replica.service.address(), requests.map(move |client| (path.clone(), client))).await?;
    remove(redis, CACHE_PREFIX);
    Ok(bytes_of_keys(redis)? / count)
}

async fn per_entry(replica: &Replica<'_>, database: &Database, effort: Effort) -> Result<f64> {
    let redis = redis_of(replica)?;
    redis.cli(&["FLUSHALL"]);
    // The first is in the memory of the replica.
    let hashes: Vec<_> =
        database.hashes.iter().skip(1).take(effort.part_of(ENTRIES) as usize).cloned().collect();
    let requests = hashes.into_iter().map(|hash| format!("/api/charts/{hash}"));
    // 200 of each client, which is below the limit.
    send_each(replica.service.address(), requests.zip((0..).map(|number| client(number / 200)))).await?;
    remove(redis, WINDOW_PREFIX);
    let entries: f64 = redis.cli(&["DBSIZE"]).parse()?;
    Ok(bytes_of_keys(redis)? / entries)
}

fn redis_of<'a>(replica: &'a Replica<'_>) -> Result<&'a PrivateRedis> {
    replica.redis.as_ref().context("the replica has no Redis")
}

/// Removes the keys with a prefix.
fn remove(redis: &PrivateRedis, prefix: &str) {
    let script =
        format!("for _, key in ipairs(redis.call('KEYS', '{prefix}*')) do redis.call('DEL', key) end");
    redis.cli(&["EVAL", &script, "0"]);
}

/// The bytes of all keys with their values (`MEMORY USAGE`) and expiries. The total of the server would include the buffers of
/// connections, which vary by more than small keys take.
fn bytes_of_keys(redis: &PrivateRedis) -> Result<f64> {
    let script = "local sum = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
            sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
        end
        return sum";
    let keys: f64 = redis.cli(&["EVAL", script, "0"]).parse()?;
    let stats = redis.cli(&["MEMORY", "STATS"]);
    // A name, and its value on the next line.
    let expiries = stats.lines().skip_while(|line| *line != "overhead.hashtable.expires").nth(1);
    Ok(keys + expiries.context("MEMORY STATS has no expiries")?.parse::<f64>()?)
}
