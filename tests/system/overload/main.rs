//! Load above capacity: the server keeps its full rate and rejects the rest, and a storm of searches does not
//! slow down lookups. The long forms are run by `make test-full`, with a release build. `api::load` is the
//! short form of the storm.
#![expect(clippy::print_stderr, reason = "the measurements are of interest also if the test passes")]

mod machine;
mod server;

use std::time::Duration;

use chart_index_system_tests::LoadOutcome;

use server::{Server, accepted_per_second, lookups, searches};

/// What a load requests.
#[derive(Clone, Copy)]
struct Work {
    paths: fn() -> Vec<String>,
    /// Requests in flight with which the peak is measured: enough to keep PostgreSQL busy, and few enough that
    /// none is rejected.
    peak_in_flight: usize,
}

/// Up to 16 fills may be in flight, and 16 may wait for them under overload.
const LOOKUPS: Work = Work { paths: lookups, peak_in_flight: 30 };

/// One search may run, and one may wait for it under overload.
const SEARCHES: Work = Work { paths: searches, peak_in_flight: 2 };

/// The sustainable load, in percent of the peak. At the peak itself any variation builds a queue.
const SUSTAINABLE: u32 = 80;

/// How much a p99 varies on a machine that does other work as well.
const SLACK: Duration = Duration::from_millis(10);

/// The longest p99 in the short form, which runs a debug build beside other tests.
const MAX_P99: Duration = Duration::from_secs(3);

/// How long each load lasts, and how often it is repeated.
struct Measurement {
    duration: Duration,
    rounds: usize,
}

const SHORT: Measurement = Measurement { duration: Duration::from_secs(2), rounds: 1 };
const LONG: Measurement = Measurement { duration: Duration::from_secs(5), rounds: 9 };
const LONG_SEARCHES: Measurement = Measurement { rounds: 5, ..LONG };

/// A load at the sustainable rate, and one at three times that between two at the peak.
#[derive(Debug)]
struct Overload {
    /// Requests per second, before and after the overload. The mean is the peak: a machine that others share
    /// changes its speed within seconds.
    peaks: [u32; 2],
    /// Accepted requests per second under overload.
    accepted: u32,
    /// Requests that were rejected under overload.
    rejected: u64,
    /// At the sustainable rate.
    p99_before: Duration,
    /// Under overload.
    p99: Duration,
}

impl Overload {
    /// Work that is not cached, in rounds.
    fn measure(server: &Server, work: Work, measurement: &Measurement) -> Vec<Self> {
        let duration = measurement.duration;
        // Also warms the server up.
        let mut peak = Self::peak(server, work, duration);
        let round = |_| {
            let round = Self::round(server, work, peak, duration);
            peak = round.peaks[1];
            round
        };
        (0..measurement.rounds).map(round).collect()
    }

    fn round(server: &Server, work: Work, last_peak: u32, duration: Duration) -> Self {
        let load = |rate| server.load((work.paths)(), rate, duration).start().finish();
        let sustainable = load(last_peak * SUSTAINABLE / 100);
        let before = Self::peak(server, work, duration);
        let rate = before * SUSTAINABLE / 100 * 3;
        let overload = load(rate);
        let after = Self::peak(server, work, duration);
        eprintln!("sustainable: {sustainable}peak {before}/s\n{rate}/s: {overload}peak {after}/s");
        assert_eq!((sustainable.errors, overload.errors), (0, 0), "{sustainable}{overload}");
        Self {
            peaks: [before, after],
            accepted: accepted_per_second(&overload, duration),
            rejected: overload.count_of(503),
            p99_before: p99(&sustainable),
            p99: p99(&overload),
        }
    }

    /// Requests per second at a concurrency at which none is rejected.
    fn peak(server: &Server, work: Work, duration: Duration) -> u32 {
        let outcome = server.closed_loop((work.paths)(), work.peak_in_flight, duration);
        assert_eq!(outcome.count_of(503), 0, "{outcome}");
        accepted_per_second(&outcome, duration)
    }

    /// The accepted requests, in percent of the peak of the same round.
    fn accepted_percent(&self) -> u32 {
        self.accepted * 200 / self.peaks.iter().sum::<u32>().max(1)
    }
}

#[test]
fn overloaded_server_serves_some_lookups_promptly() {
    for round in Overload::measure(&Server::start(), LOOKUPS, &SHORT) {
        assert!(round.rejected > 0, "{round:?}");
        assert!(round.accepted_percent() >= 25, "{round:?}");
        assert!(round.p99 < MAX_P99, "{round:?}");
    }
}

#[test]
#[ignore = "takes 4 minutes and a release build: make test-full"]
fn long_overload_keeps_rate_and_latency() {
    assert_keeps_rate_and_latency(&Overload::measure(&Server::start(), LOOKUPS, &LONG));
}

#[test]
#[ignore = "takes 2 minutes and a release build: make test-full"]
fn long_overload_of_searches_keeps_rate_and_latency() {
    let server = Server::start();
    server.add_catalogue();
    assert_keeps_rate_and_latency(&Overload::measure(&server, SEARCHES, &LONG_SEARCHES));
}

fn assert_keeps_rate_and_latency(rounds: &[Overload]) {
    // The speed of a machine that others share differs between rounds, so each is compared with itself.
    let accepted = median(rounds.iter().map(Overload::accepted_percent));
    let longer = median(rounds.iter().map(|round| round.p99.saturating_sub(round.p99_before * 2)));
    eprintln!("accepted: {accepted} % of the peak; p99 above twice that before: {longer:?}");
    assert!(rounds.iter().all(|round| round.rejected > 0), "{rounds:?}");
    assert!(accepted >= 90, "{rounds:?}");
    assert!(longer <= SLACK, "{rounds:?}");
}

/// Lookups, half of them not cached, without and with five times as many searches as the server can do.
#[derive(Debug)]
struct Storm {
    rejected: u64,
    /// Of lookups without the storm.
    p99_before: Duration,
    /// Of lookups during the storm.
    p99: Duration,
}

impl Storm {
    fn measure(server: &Server, lookups_per_second: u32, measurement: &Measurement) -> Self {
        let duration = measurement.duration;
        Overload::peak(server, SEARCHES, duration);
        let peak = Overload::peak(server, SEARCHES, duration);
        eprintln!("{peak} searches/s");
        let round = |_| Self::round(server, lookups_per_second, (peak * 5).clamp(1, 20_000), duration);
        let rounds: Vec<_> = (0..measurement.rounds).map(round).collect();
        Self {
            rejected: median(rounds.iter().map(|round| round.rejected)),
            p99_before: median(rounds.iter().map(|round| round.p99_before)),
            p99: median(rounds.iter().map(|round| round.p99)),
        }
    }

    fn round(server: &Server, lookups_per_second: u32, searches_per_second: u32, duration: Duration) -> Self {
        let lookups = || server.load(server.half_cached(), lookups_per_second, duration).start();
        let quiet = lookups().finish();
        // Longer than the lookups, and stopped with them.
        let storm = server.load(searches(), searches_per_second, duration * 10).start();
        let stormy = lookups().finish();
        let storm = storm.stop();
        eprintln!("without storm: {quiet}with storm: {stormy}{searches_per_second} searches/s: {storm}");
        for lookups in [&quiet, &stormy] {
            assert_eq!(lookups.count_of(200), lookups.requests(), "{lookups}");
        }
        Self { rejected: storm.count_of(503), p99_before: p99(&quiet), p99: p99(&stormy) }
    }
}

#[test]
#[ignore = "takes 3 minutes and a release build: make test-full"]
fn long_storm_of_searches_does_not_slow_down_lookups() {
    let server = Server::start();
    server.add_catalogue();
    let storm = Storm::measure(&server, 300, &LONG_SEARCHES);
    eprintln!("{storm:?}");
    assert!(storm.rejected > 0, "{storm:?}");
    assert!(storm.p99 <= storm.p99_before * 2 + SLACK, "{storm:?}");
}

/// The p99 of the accepted requests.
fn p99(outcome: &LoadOutcome) -> Duration {
    outcome.latency(200, 990).unwrap_or(Duration::MAX)
}

fn median<T: Ord>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.swap_remove(values.len() / 2)
}
