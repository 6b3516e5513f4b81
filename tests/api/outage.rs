//! PostgreSQL goes away and comes back under requests, and its connections go silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chart_index_tests::{PrivatePostgres, Proxy};
use tokio::task::JoinSet;

use super::*;

/// How soon the service must have found PostgreSQL again.
const RECOVERY: Duration = Duration::from_secs(15);

struct Outage {
    postgres: PrivatePostgres,
    service: Service,
    /// What to ask for, and the status of its answer.
    paths: Vec<(String, u16)>,
    /// The status of `/readyz` while PostgreSQL is unavailable: "Ready: the schema of this version was seen once since
    /// the start."
    readiness: u16,
}

impl Outage {
    async fn new() -> Self {
        let postgres = PrivatePostgres::start();
        let library = Library::new();
        let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
            let run = indexer(postgres.url(), arguments);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
        }
        let service = Service::start(postgres.url());
        let unknown = "0".repeat(64);
        let list = service.client().get("/api/chartsets").await.json();
        let id = list["items"][0]["id"].as_str().expect("a chartset").to_owned();
        let paths = vec![
            (format!("/api/charts/{chart}"), 200),
            (format!("/api/charts/{chart}/rox"), 200),
            (format!("/api/charts/{unknown}"), 200),
            (format!("/api/charts/{unknown}/rox"), 404),
            ("/api/chartsets".into(), 200),
            (format!("/api/chartsets/{id}"), 200),
            (format!("/go/chartset/{id}"), 302),
        ];
        // One that has kept nothing.
        drop(service);
        let service = Service::start(postgres.url());
        Self { postgres, service, paths, readiness: 200 }
    }

    /// "503 problem with `Retry-After`, never `unknown` or 404"
    async fn assert_unavailable(&self) {
        for (path, _) in &self.paths {
            let answer = self.service.client().get(path).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("content-type")),
                (503, "application/problem+json"),
                "{path}"
            );
            assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds >= 1), "{path}");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
        self.assert_health(self.readiness).await;
    }

    async fn assert_cached(&self) {
        for (path, expected) in &self.paths {
            assert_cached(&self.service, path, *expected).await;
        }
    }

    async fn assert_health(&self, readiness: u16) {
        assert_eq!(self.service.private_client().get("/readyz").await.status, readiness);
        assert_eq!(self.service.private_client().get("/livez").await.status, 200);
    }

    /// "PostgreSQL killed: cached answers continue."
    async fn assert_continues(&self) {
        for (path, expected) in &self.paths {
            assert_eq!(self.service.client().get(path).await.status, *expected, "{path}");
        }
        self.assert_health(200).await;
    }

    /// Recovery by itself: within a bound, and from then on every answer is right.
    async fn assert_recovers(&self) {
        let since = Instant::now();
        for (path, expected) in &self.paths {
            loop {
                let status = self.service.client().get(path).await.status.as_u16();
                if status == *expected {
                    break;
                }
                assert_eq!(status, 503, "{path}: nothing but the right answer or 503");
                assert!(since.elapsed() < RECOVERY, "{path} does not recover");
            }
        }
        assert_eq!(self.service.private_client().get("/readyz").await.status, 200);
    }
}

#[tokio::test]
async fn a_killed_postgresql_is_an_outage_and_no_unknown_chart() {
    let outage = Outage::new().await;
    outage.postgres.kill();
    outage.assert_unavailable().await;
    outage.postgres.restart();
    outage.assert_recovers().await;
}

#[tokio::test]
async fn a_frozen_postgresql_is_an_outage_within_the_deadline() {
    let outage = Outage::new().await;
    assert_eq!(outage.service.private_client().get("/readyz").await.status, 200, "connected");
    outage.postgres.freeze();
    let since = Instant::now();
    let answer = outage.service.client().get(&outage.paths[0].0).await;
    assert_eq!(answer.status, 503);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    outage.postgres.thaw();
    outage.assert_recovers().await;
}

/// What was asked for before is answered on, for longer than anything is served without looking again.
#[tokio::test]
async fn what_is_kept_is_answered_while_postgresql_is_away() {
    let outage = Outage::new().await;
    outage.assert_cached().await;
    outage.postgres.kill();
    let killed = Instant::now();
    while killed.elapsed() < Duration::from_secs(7) {
        outage.assert_continues().await;
    }
    let never_asked = format!("/api/charts/{}", "1".repeat(64));
    assert_eq!(outage.service.client().get(&never_asked).await.status, 503);
    outage.postgres.restart();
    outage.assert_recovers().await;
}

/// A request that could be given an older answer waits half a second for PostgreSQL at most.
#[tokio::test]
async fn what_is_kept_is_answered_while_postgresql_hangs() {
    let outage = Outage::new().await;
    outage.assert_cached().await;
    outage.postgres.freeze();
    let frozen = Instant::now();
    while frozen.elapsed() < Duration::from_secs(5) {
        for (path, expected) in &outage.paths {
            let asked = Instant::now();
            assert_eq!(outage.service.client().get(path).await.status, *expected, "{path}");
            assert!(asked.elapsed() < Duration::from_secs(2), "{path} took {:?}", asked.elapsed());
        }
    }
    outage.postgres.thaw();
    outage.assert_recovers().await;
}

/// "The server starts while it is away."
#[tokio::test]
async fn the_service_starts_while_postgresql_is_away() {
    let mut outage = Outage::new().await;
    outage.postgres.kill();
    outage.service = Service::start(outage.postgres.url());
    outage.readiness = 503;
    outage.assert_unavailable().await;
    outage.postgres.restart();
    outage.assert_recovers().await;
}

/// Connections on which nothing arrives any more, and which nothing closes, while statements run on them: new ones work.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_recovers_from_silent_connections() {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
    let proxy = Proxy::start(database.url()).await;
    let arguments = ["--database-max-connections", "2"];
    let service = Service::start_with(
        proxy.url(),
        &ServiceOptions { arguments: &arguments, ..ServiceOptions::default() },
    );
    let client = service.client();
    let mut next = 0;
    // Of different charts at once, none of which is cached.
    let mut lookups = || {
        let mut lookups = JoinSet::new();
        for _ in 0..64 {
            let (client, path) = (client.clone(), format!("/api/charts/{next:064}"));
            next += 1;
            lookups.spawn(async move { client.get(&path).await.status.as_u16() });
        }
        lookups.join_all()
    };
    assert!(lookups().await.iter().all(|status| *status == 200));
    let lock = "BEGIN; LOCK TABLE charts IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)";
    let mut locking = database.start_psql(lock);
    let state = |condition: &str| {
        let count =
            format!("SELECT count(*) FROM pg_locks WHERE relation = 'charts'::regclass AND {condition}");
        database.psql(&count)
    };
    within(RECOVERY, async || (state("mode = 'AccessExclusiveLock' AND granted") == "1").then_some(())).await;
    let during = tokio::spawn(lookups());
    within(RECOVERY, async || (state("NOT granted") == "2").then_some(())).await;
    proxy.silence_open_connections();
    let silenced = Instant::now();
    let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
               WHERE datname = current_database() AND query LIKE 'BEGIN; LOCK%'";
    let _ = database.psql(end);
    let _ = locking.wait();
    during.await.unwrap();
    while lookups().await.iter().any(|status| *status != 200) {
        assert!(silenced.elapsed() < Duration::from_secs(10), "{:?}", silenced.elapsed());
    }
    assert!(silenced.elapsed() < Duration::from_secs(10), "{:?}", silenced.elapsed());
    assert_eq!(service.private_client().get("/readyz").await.status, 200);
}

/// Misses fail at once, so that they leave the requests that the server takes to those that are cached.
#[tokio::test(flavor = "multi_thread")]
async fn misses_do_not_crowd_out_hits_during_an_outage() {
    let database = TestDatabase::create().await;
    indexer(database.url(), &["migrate"]).succeeded();
    let mut proxy = Proxy::start(database.url()).await;
    let arguments = ["--max-requests-in-flight", "8"];
    let service = Service::start_with(
        proxy.url(),
        &ServiceOptions { arguments: &arguments, ..ServiceOptions::default() },
    );
    let (client, cached) = (service.client(), format!("/api/charts/{:064}", 0));
    assert_cached(&service, &cached, 200).await;
    proxy.cut().await;
    let miss = async |number: usize| client.get(&format!("/api/charts/{number:064}")).await.status;
    // Until the breaker is open.
    tokio::join!(miss(1), miss(2), miss(3), miss(4));
    let enough_hits = Arc::new(AtomicBool::new(false));
    let mut misses = JoinSet::new();
    for worker in 0..6 {
        let (client, enough_hits) = (client.clone(), Arc::clone(&enough_hits));
        misses.spawn(async move {
            // Never fewer than 100, and for as long as hits are counted beside them.
            let mut number = 0;
            while number < 100 || !enough_hits.load(Ordering::Relaxed) {
                let path = format!("/api/charts/{:064}", 1_000_000 * (worker + 1) + number);
                assert_eq!(client.get(&path).await.status, 503);
                number += 1;
            }
        });
    }
    let start = Instant::now();
    for _ in 0..=100 {
        assert_eq!(client.get(&cached).await.status, 200);
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "101 hits beside misses take {:?}",
            start.elapsed()
        );
    }
    enough_hits.store(true, Ordering::Relaxed);
    while let Some(done) = misses.join_next().await {
        done.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(10), "600 misses take {:?}", start.elapsed());
    proxy.listen().await;
    within(Duration::from_secs(3), async || (miss(5).await == 200).then_some(())).await;
}
