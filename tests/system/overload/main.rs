//! Load above capacity: the server keeps its full rate and rejects the rest, and what is cached is served as
//! promptly as before.
//!
//! A proxy delays every statement, so that the capacity follows from the number of connections and from the
//! delay instead of from the processors. `make load` overloads the processors.
#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test panics if its set-up fails; the measurements are of interest also if it passes"
)]

use std::cell::Cell;
use std::time::Duration;

use chart_index_system_tests::{LoadOutcome, OpenLoop};
use chart_index_tests::{ChartSpec, Library, PrivatePostgres, PrivateRedis, Proxy, Service, indexer};
use tokio::runtime::Runtime;

/// What each statement takes, apart from its processor time.
const DELAY: Duration = Duration::from_millis(20);

const CONNECTIONS: u32 = 4;

/// Twice the connections, as many of which may wait for a permit under overload.
const FILLS: u32 = 8;

/// The sustainable load, in percent of the peak. At the peak itself any variation builds a queue.
const SUSTAINABLE: u32 = 80;

/// Cached lookups per second beside each load.
const HITS: u32 = 100;

/// How much a p99 varies on a machine that does other work as well.
const SLACK: Duration = Duration::from_millis(20);

/// How long each load is measured, after a warm-up.
const DURATION: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);

/// Equal parts of the measurement whose latencies are determined separately. In one of them another process
/// may stop this one for longer than the slack.
const PARTS: u32 = 5;

/// What a load requests.
struct Work {
    /// The path of a request with a number, which no other request has.
    path: fn(u64) -> String,
    /// Requests in flight with which the peak is measured: enough to keep the connections busy, and few enough
    /// that none is rejected.
    peak_in_flight: usize,
    /// Statements that an accepted request waits for under overload, one after another.
    statements: u32,
}

/// One waits until all that were admitted before it are done: those with a permit, and those in the queue.
const LOOKUPS: Work = Work {
    path: |number| format!("/api/charts/{}", blake3::hash(&number.to_le_bytes()).to_hex()),
    peak_in_flight: 2 * FILLS as usize - 2,
    statements: 2 * FILLS / CONNECTIONS,
};

/// One search may run, and one may wait for it under overload. Each takes three statements.
const SEARCHES: Work = Work {
    path: |number| format!("/api/chartsets?lengthMax={}.{:03}", 60 + number / 1_000, number % 1_000),
    peak_in_flight: 2,
    statements: 2 * 3,
};

/// A server whose statements are delayed.
struct Server {
    service: Service,
    cached: String,
    /// The number of paths so far.
    paths: Cell<u64>,
    _runtime: Runtime,
    _proxy: Proxy,
    _postgres: PrivatePostgres,
    _redis: PrivateRedis,
}

impl Server {
    fn start() -> Self {
        let (postgres, redis) = (PrivatePostgres::start(), PrivateRedis::start(&[]));
        let library = Library::new();
        let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        indexer(postgres.url(), &["migrate"]).succeeded();
        indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
        let runtime = Runtime::new().expect("a runtime");
        let proxy = runtime.block_on(Proxy::start_with_delay(postgres.url(), DELAY));
        let (redis_url, connections, fills) = (redis.url(), CONNECTIONS.to_string(), FILLS.to_string());
        let variables = [
            ("TRUSTED_PROXIES", "127.0.0.0/8"),
            ("REDIS_URL", &redis_url),
            ("DATABASE_MAX_CONNECTIONS", &connections),
            ("MAX_FILLS_IN_FLIGHT", &fills),
            ("POSTGRES_MAX_SEARCHES", "1"),
        ];
        Self {
            service: Service::with_variables(proxy.url(), &variables),
            cached: format!("/api/charts/{chart}"),
            paths: Cell::new(0),
            _runtime: runtime,
            _proxy: proxy,
            _postgres: postgres,
            _redis: redis,
        }
    }

    /// Requests at a rate that no cache has.
    fn load(&self, work: &Work, rate: u32, max_in_flight: usize) -> OpenLoop {
        let requests = u64::from(rate) * (WARM_UP + DURATION).as_secs();
        let next = self.paths.get();
        self.paths.set(next + requests);
        let paths = (next..next + requests).map(work.path).collect();
        OpenLoop { rate, requests, warm_up: WARM_UP, max_in_flight, ..self.open_loop(paths) }
    }

    fn open_loop(&self, paths: Vec<String>) -> OpenLoop {
        OpenLoop::new(self.service.address(), paths)
    }

    /// Accepted requests per second at a concurrency at which none is rejected.
    fn peak(&self, work: &Work) -> u32 {
        let outcome = self.load(work, 2_000, work.peak_in_flight).start().finish();
        assert_eq!(outcome.count_of(503), 0, "{outcome}");
        accepted_per_second(&outcome)
    }

    /// The outcomes of a load at a rate, and of the cached lookups beside it.
    fn load_with_hits(&self, work: &Work, rate: u32) -> [LoadOutcome; 2] {
        let requests = u64::from(HITS) * (WARM_UP + DURATION).as_secs();
        let hits =
            OpenLoop { rate: HITS, requests, warm_up: WARM_UP, ..self.open_loop(vec![self.cached.clone()]) };
        let (load, hits) = (self.load(work, rate, 4096).start(), hits.start());
        [load.finish(), hits.finish()]
    }
}

fn accepted_per_second(outcome: &LoadOutcome) -> u32 {
    u32::try_from(outcome.count_of(200) / DURATION.as_secs()).unwrap_or(u32::MAX)
}

/// The p99 of the accepted requests in every part but the slowest.
fn p99(outcome: &LoadOutcome) -> Duration {
    let length = DURATION / PARTS;
    let p99_of = |part| {
        let start = WARM_UP + length * part;
        let accepted = outcome.samples.iter().filter(|sample| {
            sample.status == Some(200) && (start..start + length).contains(&sample.intended)
        });
        let mut latencies: Vec<Duration> = accepted.map(|sample| sample.latency).collect();
        latencies.sort_unstable();
        latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(Duration::MAX)
    };
    let mut parts: Vec<Duration> = (0..PARTS).map(p99_of).collect();
    parts.sort_unstable();
    parts[parts.len() - 2]
}

/// Loads the server with three times what it sustains.
fn assert_keeps_rate_and_latency(server: &Server, work: &Work) {
    let peak = server.peak(work);
    let sustainable = peak * SUSTAINABLE / 100;
    let [before, hits_before] = server.load_with_hits(work, sustainable);
    let [overload, hits] = server.load_with_hits(work, sustainable * 3);
    eprintln!(
        "{}\npeak {peak}/s\n{sustainable}/s: {before}hits: {hits_before}three times: {overload}hits: {hits}",
        (work.path)(0)
    );
    for outcome in [&before, &overload, &hits_before, &hits] {
        assert_eq!((outcome.errors, outcome.not_sent), (0, 0), "{outcome}");
    }
    assert_eq!((hits_before.count_of(503), hits.count_of(503)), (0, 0), "hits need no permit");
    assert!(overload.count_of(503) > 0, "some are rejected");
    let accepted = accepted_per_second(&overload) * 100 / peak;
    assert!(accepted >= 85, "{accepted} % of the peak");
    assert!(p99(&overload) <= DELAY * work.statements + SLACK * 2, "{:?}", p99(&overload));
    let hits = [p99(&hits_before), p99(&hits)];
    assert!(hits[1] <= hits[0] * 2 + SLACK, "{hits:?}");
}

#[test]
fn overload_keeps_rate_and_latency() {
    let server = Server::start();
    for work in [LOOKUPS, SEARCHES] {
        assert_keeps_rate_and_latency(&server, &work);
    }
}
