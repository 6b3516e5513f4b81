//! Compares designs of the sliding window in a real Redis: processor time per call and memory per address.
//!
//! `cargo bench -p chart-index-ratelimit --bench window_designs`. It starts a redis-server of its own. The figure
//! for speed is Redis's own (`INFO commandstats`), so that it does not depend on the client, the network or, much,
//! on what else the machine does.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult, Script, cmd, pipe};

const DESIGNS: [(&str, &str); 6] = [
    ("string of times (5 B)", include_str!("../src/window.lua")),
    ("list, absolute (10 B)", include_str!("designs/list.lua")),
    ("list, modulo 2^31 (6 B)", include_str!("designs/short_list.lua")),
    ("list, 6 B, trimmed", include_str!("designs/trimmed_list.lua")),
    ("ring in a string (5 B)", include_str!("designs/ring.lua")),
    ("two counters, inexact", include_str!("designs/two_counters.lua")),
];
/// Admissions in Redis when every address is at its limit.
const ADMISSIONS: usize = 480_000;
const WINDOW: Duration = Duration::from_mins(1);
const PIPELINE_DEPTH: usize = 200;

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
            "{:<24} {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8}",
            "design", "first", "filling", "sliding", "refused", "1 held", "10 held", "full"
        );
        for (name, code) in DESIGNS {
            Run::new(&mut redis, code, limit, addresses)?.print(name)?;
        }
    }
    Ok(())
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

    fn print(mut self, name: &str) -> RedisResult<()> {
        let first = self.rounds(1, WINDOW)?;
        let first_over = Instant::now();
        let one_held = self.bytes_per_address()?;
        self.rounds(9, WINDOW)?;
        let ten_held = self.bytes_per_address()?;
        let filling = self.rounds(self.limit - 10, WINDOW)?;
        let full = self.bytes_per_address()?;
        let refused = self.rounds(3, WINDOW)?;
        // A window that ends just after the first round: of every address the oldest admission has left, and no
        // other, as it is for an address that asks exactly as often as it may.
        let sliding = self.rounds(1, first_over.elapsed())?;
        println!(
            "{name:<24} {first:>8} {filling:>8} {sliding:>8} {refused:>8} | {one_held:>8} {ten_held:>8} {full:>8}"
        );
        Ok(())
    }

    /// Asks for every address this many times; Redis's own processor time per call.
    fn rounds(&mut self, rounds: usize, window: Duration) -> RedisResult<String> {
        cmd("CONFIG").arg("RESETSTAT").exec(self.redis)?;
        let addresses: Vec<usize> = (0..self.addresses).collect();
        for _ in 0..rounds {
            for batch in addresses.chunks(PIPELINE_DEPTH) {
                let mut pipeline = pipe();
                for address in batch {
                    let key = format!("rl1:l:{address:08x}");
                    let (hash, window_us) = (self.script.get_hash(), window.as_micros().to_string());
                    pipeline.cmd("EVALSHA").arg(hash).arg(1).arg(key).arg(self.limit).arg(window_us).ignore();
                }
                pipeline.exec(self.redis)?;
            }
        }
        info(self.redis, "commandstats", "cmdstat_evalsha:calls=")
            .map(|line| line.split("usec_per_call=").nth(1).unwrap_or("?").split(',').take(1).collect())
    }

    /// The key, its value and its place in the table of keys, without the entry for its expiry, which all have.
    fn bytes_per_address(&mut self) -> RedisResult<usize> {
        cmd("MEMORY").arg("USAGE").arg("rl1:l:00000000").arg("SAMPLES").arg(0).query(self.redis)
    }
}

/// What stands behind a prefix in a section of `INFO`.
fn info(redis: &mut Connection, section: &str, prefix: &str) -> RedisResult<String> {
    let text: String = cmd("INFO").arg(section).query(redis)?;
    Ok(text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned())
}
