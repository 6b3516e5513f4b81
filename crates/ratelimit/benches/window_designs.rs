//! Compares designs of the sliding window in a real Redis: processor time per call and memory per address.
//!
//! `cargo bench -p chart-index-ratelimit --bench window_designs`. It starts a redis-server of its own. The figure
//! for speed is Redis's own (`INFO commandstats`), so that it does not depend on the client or the network. Other
//! work on the machine only ever adds to it, so the designs take turns, every round of calls is as fast as the fastest
//! of several runs, and the figure is the mean over the rounds: what a design does only now and then is in it.
//!
//! A list of 10 bytes each with trimming is the only other design here that is exact in all it answers for windows
//! of up to a day; the others show what a part of that costs.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult, Script, cmd, pipe};

const DESIGNS: [(&str, &str); 7] = [
    ("row, then ring (5 B)", include_str!("../src/window.lua")),
    ("string of times (5 B)", include_str!("designs/string.lua")),
    ("list, absolute (10 B)", include_str!("designs/list.lua")),
    ("list, modulo 2^31 (6 B)", include_str!("designs/short_list.lua")),
    ("list, trimmed (10 B)", include_str!("designs/trimmed_list.lua")),
    ("ring, no trimming (5 B)", include_str!("designs/ring.lua")),
    ("two counters, inexact", include_str!("designs/two_counters.lua")),
];
/// Admissions in Redis when every address is at its limit.
const ADMISSIONS: usize = 48_000;
const RUNS: usize = 9;
const WINDOW: Duration = Duration::from_mins(1);
const PIPELINE_DEPTH: usize = 200;
/// Rounds after the one that fills the window: refused ones, and one that finds the oldest admission gone.
const AFTER_FILLING: usize = 4;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> anyhow::Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .spawn()?;
    let _server = Server(child);
    let mut redis = connect(port)?;
    for limit in [60, 240, 1_000] {
        let addresses = ADMISSIONS / limit;
        println!(
            "\nlimit {limit}, {addresses} addresses: microseconds of Redis per call | bytes per address"
        );
        println!(
            "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8}",
            "design", "first", "2 to 10", "filling", "sliding", "refused", "1 held", "10 held", "full"
        );
        let mut least = [const { Vec::new() }; DESIGNS.len()];
        let mut bytes = [[0; 3]; DESIGNS.len()];
        for _ in 0..RUNS {
            for (design, (_, code)) in DESIGNS.iter().enumerate() {
                let (rounds, held) = Run::new(&mut redis, code, limit, addresses)?.measure()?;
                least[design] = least_of(&least[design], rounds);
                bytes[design] = held;
            }
        }
        for (design, (name, _)) in DESIGNS.iter().enumerate() {
            print(name, &least[design], bytes[design]);
        }
    }
    Ok(())
}

/// Round by round the faster of two runs.
fn least_of(before: &[f64], now: Vec<f64>) -> Vec<f64> {
    let mut before = before.iter().copied();
    now.into_iter().map(|now| before.next().map_or(now, |before| now.min(before))).collect()
}

/// One line: microseconds per call, and bytes of an address with 1, 10 and all admissions.
fn print(name: &str, rounds: &[f64], [one, ten, full]: [usize; 3]) {
    let mean = |rounds: &[f64]| rounds.iter().sum::<f64>() / rounds.iter().map(|_| 1.0).sum::<f64>();
    let filled = rounds.len() - AFTER_FILLING;
    let (first, few, filling) = (mean(&rounds[..1]), mean(&rounds[1..10]), mean(&rounds[10..filled]));
    let [refused, sliding] = [&rounds[filled..rounds.len() - 1], &rounds[rounds.len() - 1..]].map(mean);
    println!(
        "{name:<24} {first:>8.2} {few:>8.2} {filling:>8.2} {sliding:>8.2} {refused:>8.2} | {one:>8} {ten:>8} {full:>8}"
    );
}

/// Waits for the server to answer: the accept of a connection is the event.
fn connect(port: u16) -> anyhow::Result<Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let begun = Instant::now();
    loop {
        match client.get_connection() {
            Ok(connection) => return Ok(connection),
            Err(_) if begun.elapsed() < Duration::from_secs(10) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
}

struct Run<'a> {
    redis: &'a mut Connection,
    script: Script,
    limit: usize,
    addresses: usize,
}

impl<'a> Run<'a> {
    fn new(redis: &'a mut Connection, code: &str, limit: usize, addresses: usize) -> RedisResult<Self> {
        cmd("FLUSHALL").exec(redis)?;
        cmd("SCRIPT").arg("LOAD").arg(code).exec(redis)?;
        Ok(Self { redis, script: Script::new(code), limit, addresses })
    }

    /// Microseconds per call of every round, and bytes of an address with 1, 10 and all admissions.
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
        // A window that ends just after the first round: of every address the oldest admission has left, and no
        // other, as it is for an address that asks exactly as often as it may.
        rounds.push(self.round(first_over.elapsed())?);
        Ok((rounds, bytes))
    }

    /// Asks once for every address; Redis's own processor time per call.
    fn round(&mut self, window: Duration) -> anyhow::Result<f64> {
        cmd("CONFIG").arg("RESETSTAT").exec(self.redis)?;
        let (window_us, kept_ms) = (window.as_micros().to_string(), WINDOW.as_millis() + 1);
        for batch in (0..self.addresses).collect::<Vec<_>>().chunks(PIPELINE_DEPTH) {
            let mut pipeline = pipe();
            for address in batch {
                let key = format!("rl2:l:{address:08x}");
                pipeline.cmd("EVALSHA").arg(self.script.get_hash()).arg(1).arg(key);
                pipeline.arg(self.limit).arg(&window_us).arg(kept_ms.to_string()).ignore();
            }
            pipeline.exec(self.redis)?;
        }
        let line = info(self.redis, "commandstats", "cmdstat_evalsha:calls=")?;
        let per_call = line.split("usec_per_call=").nth(1).and_then(|rest| rest.split(',').next());
        Ok(per_call.unwrap_or_default().parse()?)
    }

    /// The key, its value and its place in the table of keys, without the entry for its expiry, which all have.
    fn bytes_per_address(&mut self) -> RedisResult<usize> {
        cmd("MEMORY").arg("USAGE").arg("rl2:l:00000000").arg("SAMPLES").arg(0).query(self.redis)
    }
}

/// What stands behind a prefix in a section of `INFO`.
fn info(redis: &mut Connection, section: &str, prefix: &str) -> RedisResult<String> {
    let text: String = cmd("INFO").arg(section).query(redis)?;
    Ok(text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned())
}
