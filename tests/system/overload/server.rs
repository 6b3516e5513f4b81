//! The server under test, and its requests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chart_index_system_tests::{LoadOutcome, OpenLoop};
use chart_index_tests::{
    ChartSpec, Library, PrivatePostgres, PrivateRedis, Service, ServiceOptions, generate_catalogue, indexer,
};

use crate::machine::{BusyCore, Cores, pin};

/// In this time connections are opened, and the server handles the first burst.
const WARM_UP: Duration = Duration::from_secs(1);

/// Enough distinct paths for a load.
const PATHS: u32 = 200_000;

/// Coprime to [`PATHS`], so that its multiples modulo [`PATHS`] are all numbers below it.
const STRIDE: u32 = 61_803;

/// A server with its PostgreSQL and Redis, on a core of its own if there are two.
pub(crate) struct Server {
    service: Service,
    cached: String,
    postgres: PrivatePostgres,
    _redis: PrivateRedis,
    _busy: BusyCore,
    _alone: MutexGuard<'static, ()>,
}

/// Tests of this target take turns: each needs the whole machine.
static TURN: Mutex<()> = Mutex::new(());

impl Server {
    pub(crate) fn start() -> Self {
        let alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        pin(Cores::Server);
        let (postgres, redis) = (PrivatePostgres::start(), PrivateRedis::start(&[]));
        let library = Library::new();
        let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        indexer(postgres.url(), &["migrate"]).succeeded();
        indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
        let redis_url = redis.url();
        let variables = [
            ("TRUSTED_PROXIES", "127.0.0.0/8"),
            ("REDIS_URL", &redis_url),
            // For the one core of PostgreSQL: see "Processors" in docs/operations/capacity.md. Searches must
            // not occupy it alone.
            ("DATABASE_MAX_CONNECTIONS", "4"),
            ("MAX_FILLS_IN_FLIGHT", "16"),
            ("POSTGRES_MAX_SEARCHES", "1"),
        ];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(postgres.url(), &options);
        pin(Cores::Clients);
        Self {
            service,
            cached: format!("/api/charts/{chart}"),
            postgres,
            _redis: redis,
            _busy: BusyCore::start(Cores::Clients),
            _alone: alone,
        }
    }

    /// Adds 10,000 chartsets.
    pub(crate) fn add_catalogue(&self) {
        generate_catalogue(self.postgres.url(), &["--add", "--chartsets", "10000", "--charts", "20000"])
            .succeeded();
    }

    /// Requests for these paths at a rate, for this time after a warm-up.
    pub(crate) fn load(&self, paths: Vec<String>, rate: u32, duration: Duration) -> OpenLoop {
        let milliseconds = u64::try_from((WARM_UP + duration).as_millis()).unwrap_or(u64::MAX);
        let requests = u64::from(rate) * milliseconds / 1_000;
        OpenLoop { rate, requests, warm_up: WARM_UP, ..OpenLoop::new(self.service.address(), paths) }
    }

    /// Sends requests as fast as possible, with this number in flight.
    pub(crate) fn closed_loop(
        &self,
        paths: Vec<String>,
        in_flight: usize,
        duration: Duration,
    ) -> LoadOutcome {
        OpenLoop { max_in_flight: in_flight, ..self.load(paths, 20_000, duration) }.start().finish()
    }

    /// Lookups, every other one of a cached chart.
    pub(crate) fn half_cached(&self) -> Vec<String> {
        lookups().into_iter().flat_map(|path| [self.cached.clone(), path]).collect()
    }
}

/// The accepted requests per second of a load.
pub(crate) fn accepted_per_second(outcome: &LoadOutcome, duration: Duration) -> u32 {
    let rate = u128::from(outcome.count_of(200)) * 1_000 / duration.as_millis();
    u32::try_from(rate).unwrap_or(u32::MAX)
}

/// Lookups of different charts, none of which is cached.
pub(crate) fn lookups() -> Vec<String> {
    let load = next_load();
    let hash = |number: u32| blake3::hash(&[load.to_le_bytes(), number.to_le_bytes()].concat()).to_hex();
    (0..PATHS).map(|number| format!("/api/charts/{}", hash(number))).collect()
}

/// Different searches, none of which is cached. Those that find fewer chartsets cost more, so low and high
/// limits are mixed: an open loop sends the first few thousand, and a closed loop skips most of those that it
/// has no room for.
pub(crate) fn searches() -> Vec<String> {
    let load = next_load();
    let length = |number: u64| format!("{}.{:03}", 60 + number / 1_000, number % 1_000);
    (0..PATHS)
        .map(|number| u64::from(number) * u64::from(STRIDE) % u64::from(PATHS))
        .map(|number| format!("/api/chartsets?sort=title&lengthMax={}&bpmMin={load}", length(number)))
        .collect()
}

/// A number for each load, so that no two request the same.
fn next_load() -> u32 {
    static LOADS: AtomicU32 = AtomicU32::new(1);
    LOADS.fetch_add(1, Ordering::Relaxed)
}
