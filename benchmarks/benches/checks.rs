//! Measures the CPU time of Redis per rate limit check: `cargo bench -p chart-index-benchmarks --bench checks`.
//!
//! Checks go through a [`Limiter`] to a Redis server of the benchmark's own, 64 at a time over one connection,
//! as under load. The time is that of the whole process of Redis (`INFO cpu`), so it includes reading commands
//! and writing replies; the client and other load of the machine hardly matter.
//!
//! - `first`: the first admission of an address
//! - `next`: its second to tenth
//! - `near_limit`: its 201st to 239th, of 240
//! - `refused`: above the limit. `refused_from_memory` is the elapsed time of a refusal that the replica
//!   remembers, without Redis.
//!
//! Each IPv6 address is in a /48 of its own.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::cell::Cell;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use chart_index_ratelimit::{ClientAddress, Group, Limiter, LimiterConfig, Limits};
use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConnection};
use criterion::{Criterion, SamplingMode};
use futures_util::future::join_all;
use tokio::runtime::Runtime;

/// The number of concurrent checks.
const IN_FLIGHT: usize = 64;
/// The fewest checks of a measurement: reading the CPU time costs Redis as much as several checks.
const MIN_CHECKS: u64 = 4_000;
/// The fewest addresses that a measurement uses in turn.
const MIN_ADDRESSES: u64 = 16;

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    let runtime = Runtime::new().unwrap();
    let server = RedisServer::start(&[]);
    for (family, address) in [("ipv4", ipv4 as fn(u64) -> ClientAddress), ("ipv6", ipv6)] {
        let mut group = criterion.benchmark_group(family);
        group.sampling_mode(SamplingMode::Flat);
        for (name, stage) in STAGES {
            let checks = runtime.block_on(Checks::new(&server, address));
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|count| runtime.block_on(checks.measure(&stage, count)));
            });
        }
        group.finish();
    }
    refused_from_memory(&mut criterion, &runtime, &server);
    criterion.final_summary();
}

/// Where an address is below its limit.
struct Stage {
    /// The admissions of an address before the measurement.
    admitted: u32,
    /// The measured checks of an address.
    measured: u64,
    admits: bool,
}

const LIMIT: u32 = Limits::DEFAULT.get();
const STAGES: [(&str, Stage); 4] = [
    ("first", Stage { admitted: 0, measured: 1, admits: true }),
    ("next", Stage { admitted: 1, measured: 9, admits: true }),
    ("near_limit", Stage { admitted: 200, measured: 39, admits: true }),
    ("refused", Stage { admitted: LIMIT, measured: u64::MAX, admits: false }),
];

fn ipv4(number: u64) -> ClientAddress {
    Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into()
}

fn ipv6(number: u64) -> ClientAddress {
    Ipv6Addr::from_bits((0x2001_0000_0000 + u128::from(number)) << 80).into()
}

struct Checks<'a> {
    server: &'a RedisServer,
    limiter: Limiter,
    address: fn(u64) -> ClientAddress,
    next_address: Cell<u64>,
}

impl<'a> Checks<'a> {
    /// A limiter whose window is longer than the benchmark, and that remembers a single refusal, so that Redis
    /// decides.
    async fn new(server: &'a RedisServer, address: fn(u64) -> ClientAddress) -> Self {
        let connection = RedisConnection::connect("main", &server.patient_config()).unwrap();
        wait_for_state(&connection, ConnectionState::Connected).await;
        let window = Duration::from_hours(24);
        let config = LimiterConfig { window, cached_refusals: 1, ..LimiterConfig::default() };
        Self { server, limiter: Limiter::new(config, connection), address, next_address: Cell::new(1) }
    }

    /// The CPU time of Redis for this many checks: the mean of at least [`MIN_CHECKS`].
    async fn measure(&self, stage: &Stage, count: u64) -> Duration {
        self.server.cli(&["FLUSHALL"]);
        let checks = count.max(MIN_CHECKS);
        let addresses = checks.div_ceil(stage.measured).max(MIN_ADDRESSES);
        // The limiter may remember a refusal of an earlier address.
        let first = self.next_address.replace(self.next_address.get() + addresses);
        for _ in 0..stage.admitted {
            self.send((first..first + addresses).map(self.address), true).await;
        }
        let (before, decided) = (cpu_time(self.server), self.limiter.counts().by_redis);
        let measured = (0..checks).map(|number| (self.address)(first + number % addresses));
        self.send(measured, stage.admits).await;
        let (after, decided) = (cpu_time(self.server), self.limiter.counts().by_redis - decided);
        // A refusal that was remembered did not reach Redis.
        assert!(decided > 0 && self.limiter.counts().by_local_window == 0, "{:?}", self.limiter.counts());
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let share = count as f64 / decided as f64;
        after.saturating_sub(before).mul_f64(share)
    }

    /// Sends a check for each address.
    async fn send(&self, addresses: impl Iterator<Item = ClientAddress>, admits: bool) {
        let addresses: Vec<_> = addresses.collect();
        for batch in addresses.chunks(IN_FLIGHT) {
            let checks = batch.iter().map(|address| self.limiter.check(Group::Lookup, *address));
            for decision in join_all(checks).await {
                assert_eq!(decision.is_ok(), admits, "{decision:?}");
            }
        }
    }
}

fn refused_from_memory(criterion: &mut Criterion, runtime: &Runtime, server: &RedisServer) {
    let checks = runtime.block_on(Checks::new(server, ipv4));
    runtime.block_on(async {
        server.cli(&["FLUSHALL"]);
        checks.send((0..LIMIT).map(|_| ipv4(0)), true).await;
        checks.send([ipv4(0)].into_iter(), false).await;
    });
    criterion.bench_function("refused_from_memory", |bencher| {
        bencher.iter(|| runtime.block_on(checks.limiter.check(Group::Lookup, black_box(ipv4(0)))));
    });
}

/// The CPU time of the server since its start.
fn cpu_time(server: &RedisServer) -> Duration {
    let info = server.cli(&["INFO", "cpu"]);
    let seconds = |name: &str| -> f64 {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        value.trim().parse().unwrap()
    };
    Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"))
}
