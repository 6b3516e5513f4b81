//! Compares designs of the sliding window in Redis by CPU time per request and by memory per address.
//!
//! `cargo bench -p chart-index-ratelimit --bench window_designs` starts a Redis server of its own. The CPU time is
//! that of Redis (`INFO commandstats`), so the client and the network do not matter. Other work on the machine can
//! only add to it, so the designs take turns, each round of calls counts with the fastest of several runs, and the
//! result is the mean over the rounds, which includes what a design does now and then only.
//!
//! The only other design that is exact for windows of up to a day is the trimmed list with 10 bytes per time. The
//! others show the cost of single properties.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::{Duration, Instant};

use chart_index_redis::testing::RedisServer;
use redis::{Connection, RedisResult, Script, cmd, pipe};

const DESIGNS: [Design; 9] = [
    Design::batched("row, then ring (5 B)", 1),
    Design::batched("8 requests a call", 8),
    Design::batched("64 requests a call", 64),
    Design::single("string of times (5 B)", include_str!("designs/string.lua")),
    Design::single("list, absolute (10 B)", include_str!("designs/list.lua")),
    Design::single("list, modulo 2^31 (6 B)", include_str!("designs/short_list.lua")),
    Design::single("list, trimmed (10 B)", include_str!("designs/trimmed_list.lua")),
    Design::single("ring, no trimming (5 B)", include_str!("designs/ring.lua")),
    Design::single("two counters, inexact", include_str!("designs/two_counters.lua")),
];

/// A script that decides on requests.
struct Design {
    name: &'static str,
    code: &'static str,
    /// How many requests a call decides on; `None` for a script with one key and other arguments.
    requests: Option<usize>,
}

impl Design {
    /// The design in use.
    const fn batched(name: &'static str, requests: usize) -> Self {
        Self { name, code: include_str!("../src/window.lua"), requests: Some(requests) }
    }

    const fn single(name: &'static str, code: &'static str) -> Self {
        Self { name, code, requests: None }
    }

    fn requests(&self) -> usize {
        self.requests.unwrap_or(1)
    }
}

/// The number of admissions in Redis when every address is at its limit.
const ADMISSIONS: usize = 48_000;
const RUNS: usize = 9;
const WINDOW: Duration = Duration::from_mins(1);
const PIPELINE_DEPTH: usize = 200;
/// The rounds after the window is full: refused ones, and one after the oldest admission has left.
const AFTER_FILLING: usize = 4;

fn main() -> anyhow::Result<()> {
    let server = RedisServer::start(&[]);
    let mut redis = redis::Client::open(server.url())?.get_connection()?;
    for limit in [60, 240, 1_000] {
        let addresses = ADMISSIONS / limit;
        println!(
            "\nlimit {limit}, {addresses} addresses: microseconds of Redis per request | bytes per address"
        );
        println!(
            "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8}",
            "design", "first", "2 to 10", "filling", "sliding", "refused", "1 held", "10 held", "full"
        );
        let mut least = [const { Vec::new() }; DESIGNS.len()];
        let mut bytes = [[0; 3]; DESIGNS.len()];
        for _ in 0..RUNS {
            for (number, design) in DESIGNS.iter().enumerate() {
                let (rounds, held) = Run::new(&mut redis, design, limit, addresses)?.measure()?;
                least[number] = least_of(&least[number], rounds);
                bytes[number] = held;
            }
        }
        for (number, design) in DESIGNS.iter().enumerate() {
            print(design.name, &least[number], bytes[number]);
        }
    }
    Ok(())
}

/// The faster of two runs for each round.
fn least_of(before: &[f64], now: Vec<f64>) -> Vec<f64> {
    let mut before = before.iter().copied();
    now.into_iter().map(|now| before.next().map_or(now, |before| now.min(before))).collect()
}

/// Prints a line: microseconds per call, and bytes of an address with 1, 10 and all admissions.
fn print(name: &str, rounds: &[f64], [one, ten, full]: [usize; 3]) {
    let mean = |rounds: &[f64]| rounds.iter().sum::<f64>() / rounds.iter().map(|_| 1.0).sum::<f64>();
    let filled = rounds.len() - AFTER_FILLING;
    let (first, few, filling) = (mean(&rounds[..1]), mean(&rounds[1..10]), mean(&rounds[10..filled]));
    let [refused, sliding] = [&rounds[filled..rounds.len() - 1], &rounds[rounds.len() - 1..]].map(mean);
    println!(
        "{name:<24} {first:>8.2} {few:>8.2} {filling:>8.2} {sliding:>8.2} {refused:>8.2} | {one:>8} {ten:>8} {full:>8}"
    );
}

struct Run<'a> {
    redis: &'a mut Connection,
    design: &'a Design,
    script: Script,
    limit: usize,
    addresses: usize,
}

impl<'a> Run<'a> {
    fn new(
        redis: &'a mut Connection,
        design: &'a Design,
        limit: usize,
        addresses: usize,
    ) -> RedisResult<Self> {
        cmd("FLUSHALL").exec(redis)?;
        cmd("SCRIPT").arg("LOAD").arg(design.code).exec(redis)?;
        Ok(Self { redis, design, script: Script::new(design.code), limit, addresses })
    }

    /// Measures microseconds per call for each round, and bytes of an address with 1, 10 and all admissions.
    fn measure(mut self) -> anyhow::Result<(Vec<f64>, [usize; 3])> {
        let (mut rounds, mut bytes) = (vec![self.round(WINDOW)?], [0; 3]);
        let first_over = Instant::now();
        for admissions in 1..=self.limit {
            for (held, bytes) in [1, 10, self.limit].into_iter().zip(&mut bytes) {
                if held == admissions {
                    *bytes = self.bytes_per_address()?;
                }
            }
            if admissions < self.limit {
                rounds.push(self.round(WINDOW)?);
            }
        }
        for _ in 1..AFTER_FILLING {
            rounds.push(self.round(WINDOW)?);
        }
        // A window that ends just after the first round: only the oldest admission of each address has left, as for an
        // address with exactly the permitted rate.
        rounds.push(self.round(first_over.elapsed())?);
        Ok((rounds, bytes))
    }

    /// Decides on one request of each address. Returns the CPU time of Redis per request in microseconds.
    fn round(&mut self, window: Duration) -> anyhow::Result<f64> {
        cmd("CONFIG").arg("RESETSTAT").exec(self.redis)?;
        let (window_us, ttl_ms) = (window.as_micros().to_string(), WINDOW.as_millis() + 1);
        let keys: Vec<_> = (0..self.addresses).map(|address| format!("rl2:l:{address:08x}")).collect();
        let calls: Vec<_> = keys.chunks(self.design.requests()).collect();
        for calls in calls.chunks(PIPELINE_DEPTH) {
            let mut pipeline = pipe();
            for keys in calls {
                pipeline.cmd("EVALSHA").arg(self.script.get_hash()).arg(keys.len()).arg(keys);
                if self.design.requests.is_none() {
                    pipeline.arg(self.limit).arg(&window_us).arg(ttl_ms.to_string()).ignore();
                    continue;
                }
                pipeline.arg(&window_us).arg(ttl_ms.to_string());
                for _ in *keys {
                    pipeline.arg(self.limit).arg(0);
                }
                pipeline.ignore();
            }
            pipeline.exec(self.redis)?;
        }
        let line = info(self.redis, "commandstats", "cmdstat_evalsha:calls=")?;
        let microseconds: f64 =
            line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().parse()?;
        Ok(microseconds / f64::from(u32::try_from(self.addresses)?))
    }

    /// The bytes of the key, its value and its hash table entry, without the entry for its expiry, which all designs
    /// need.
    fn bytes_per_address(&mut self) -> RedisResult<usize> {
        cmd("MEMORY").arg("USAGE").arg("rl2:l:00000000").arg("SAMPLES").arg(0).query(self.redis)
    }
}

/// The rest of the line with this prefix in a section of `INFO`.
fn info(redis: &mut Connection, section: &str, prefix: &str) -> RedisResult<String> {
    let text: String = cmd("INFO").arg(section).query(redis)?;
    Ok(text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned())
}
