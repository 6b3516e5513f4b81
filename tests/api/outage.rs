//! Outages of PostgreSQL, and recovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chart_index_tests::{PrivatePostgres, Proxy};
use tokio::task::JoinSet;

use super::*;

/// Maximum time to recover after PostgreSQL is available again.
const RECOVERY: Duration = Duration::from_secs(15);

struct Outage {
    postgres: PrivatePostgres,
    service: Service,
    /// Paths, and the status of their responses.
    paths: Vec<(String, u16)>,
    /// The status of `/readyz` while PostgreSQL is unavailable: 200 once the schema has been seen.
    readiness: u16,
}

impl Outage {
    fn new() -> Self {
        Self::with_role("postgres")
    }

    /// The service logs in as this role.
    fn with_role(role: &str) -> Self {
        let postgres = PrivatePostgres::start();
        let url = postgres.url().replace("postgres@", &format!("{role}@"));
        if role != "postgres" {
            TestDatabase::psql_on(postgres.url(), &format!("CREATE ROLE {role} SUPERUSER LOGIN"));
        }
        let library = Library::new();
        let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        for arguments in [&["migrate"][..], &["ingest", &library.argument()]] {
            indexer(postgres.url(), arguments).succeeded();
        }
        let unknown = "0".repeat(64);
        let id = TestDatabase::psql_on(postgres.url(), "SELECT id FROM chartsets");
        let paths = vec![
            (format!("/api/charts/{chart}"), 200),
            (format!("/api/charts/{chart}/rox"), 200),
            (format!("/api/charts/{chart}/preview"), 200),
            (format!("/api/charts/{unknown}/preview"), 404),
            (format!("/api/charts/{unknown}"), 200),
            (format!("/api/charts/{unknown}/rox"), 404),
            ("/api/chartsets".into(), 200),
            (format!("/api/chartsets/{id}"), 200),
            (format!("/go/chartset/{id}"), 302),
        ];
        let service = Service::start(&url);
        Self { postgres, service, paths, readiness: 200 }
    }

    /// The redirect to the hash filter, and the filter. They are cached apart from other responses.
    fn hash_filter(&self) -> [(String, u16); 2] {
        let path = "/api/charts/filter";
        let last = TestDatabase::psql_on(self.postgres.url(), "SELECT max(sequence) FROM hash_filters");
        [(path.to_owned(), 302), (format!("{path}/{last}"), 200)]
    }

    /// Every response is a 503 problem with `Retry-After`, and none is `unknown` or 404.
    async fn assert_unavailable(&self) {
        for (path, _) in &self.paths {
            let response = self.service.client().get(path).await;
            assert_eq!(
                (response.status.as_u16(), response.header("content-type")),
                (503, "application/problem+json"),
                "{path}"
            );
            assert!(
                response.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds >= 1),
                "{path}"
            );
            assert_eq!(response.header("cache-control"), "no-store");
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

    /// Cached responses are served during the outage.
    async fn assert_serves_cached(&self) {
        for (path, expected) in &self.paths {
            assert_eq!(self.service.client().get(path).await.status, *expected, "{path}");
        }
        self.assert_health(200).await;
    }

    /// The service recovers by itself, and every response is correct or 503 until then.
    async fn assert_recovers(&self) {
        let since = Instant::now();
        for (path, expected) in &self.paths {
            loop {
                let status = self.service.client().get(path).await.status.as_u16();
                if status == *expected {
                    break;
                }
                assert_eq!(status, 503, "{path}: the correct response or 503");
                assert!(since.elapsed() < RECOVERY, "{path} does not recover");
            }
        }
        assert_eq!(self.service.private_client().get("/readyz").await.status, 200);
    }
}

/// Also a service that starts meanwhile.
#[tokio::test]
async fn killed_postgresql_is_503_and_recovers() {
    let mut outage = Outage::new();
    // Pages of the feed are never cached.
    outage.paths.push(("/api/changes".into(), 200));
    outage.paths.extend(outage.hash_filter());
    outage.postgres.kill();
    outage.assert_unavailable().await;
    let starting = Service::start(outage.postgres.url());
    let running = std::mem::replace(&mut outage.service, starting);
    outage.readiness = 503;
    let address =
        outage.postgres.url().rsplit_once('@').and_then(|(_, rest)| rest.split_once('/')).unwrap().0;
    let log = outage.service.log().join("\n");
    let cause = format!("cannot connect to {address}: Connection refused");
    assert!(log.contains("not ready") && log.contains(&cause), "{log}");
    outage.assert_unavailable().await;
    outage.postgres.restart();
    outage.assert_recovers().await;
    outage.service = running;
    outage.assert_recovers().await;
}

#[tokio::test]
async fn frozen_postgresql_is_503_within_the_deadline() {
    let outage = Outage::new();
    assert_eq!(outage.service.private_client().get("/readyz").await.status, 200, "connected");
    outage.postgres.freeze();
    let since = Instant::now();
    let response = outage.service.client().get(&outage.paths[0].0).await;
    assert_eq!(response.status, 503);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    outage.postgres.thaw();
    outage.assert_recovers().await;
}

/// Cached responses are served for longer than they are fresh, also in a batch.
#[tokio::test]
async fn cached_responses_are_served_without_postgresql() {
    let mut outage = Outage::new();
    outage.paths.extend(outage.hash_filter());
    outage.assert_cached().await;
    outage.postgres.kill();
    let killed = Instant::now();
    // They are fresh for three seconds without a poll, and read again each second from then on.
    while killed.elapsed() < Duration::from_secs(5) {
        outage.assert_serves_cached().await;
    }
    let not_cached = "1".repeat(64);
    let client = outage.service.client();
    assert_eq!(client.get(&format!("/api/charts/{not_cached}")).await.status, 503);
    let cached = "0".repeat(64);
    for (hashes, status) in [(&[&cached][..], 200), (&[&cached, &not_cached], 503)] {
        let batch = client.look_up("", &serde_json::json!({ "hashes": hashes })).await;
        assert_eq!(batch.status, status, "{hashes:?}");
    }
    outage.postgres.restart();
    outage.assert_recovers().await;
}

/// A request with a stale cached response waits for PostgreSQL at most half a second. Also if the catalogue
/// changed in the last seconds, as it does all the time while an ingest runs.
#[tokio::test]
async fn cached_responses_are_served_while_postgresql_hangs() {
    let mut outage = Outage::new();
    let lists = (1..=10).flat_map(|number| {
        [format!("/api/chartsets?bpmMin={number}"), format!("/?mainBpmMin={number}")].map(|path| (path, 200))
    });
    outage.paths.extend(lists);
    outage.assert_cached().await;
    let library = Library::new();
    let spec = ChartSpec::numbered(2);
    library.osu("alpha/2 two/a.osu", spec.clone());
    indexer(outage.postgres.url(), &["ingest", &library.argument()]).succeeded();
    let client = outage.service.client();
    let lookup = format!("/api/charts/{}", spec.note_hash());
    within(CHANGE_TIMEOUT, async || (client.get(&lookup).await.json()["status"] == "known").then_some(()))
        .await;
    outage.postgres.freeze();
    let frozen = Instant::now();
    while frozen.elapsed() < Duration::from_secs(5) {
        for (path, expected) in &outage.paths {
            let start = Instant::now();
            assert_eq!(client.get(path).await.status, *expected, "{path}");
            assert!(start.elapsed() < Duration::from_secs(2), "{path} took {:?}", start.elapsed());
        }
    }
    outage.assert_health(200).await;
    outage.postgres.thaw();
    outage.assert_recovers().await;
}

/// As while a password is being rotated. PostgreSQL runs again, and refuses the login of the service.
#[tokio::test]
async fn refused_login_is_503_until_it_is_permitted() {
    let outage = Outage::with_role("app");
    let alter = |verb: &str| TestDatabase::psql_on(outage.postgres.url(), &format!("ALTER ROLE app {verb}"));
    alter("NOLOGIN");
    outage.postgres.stop();
    outage.assert_unavailable().await;
    outage.postgres.restart();
    let refusals = || outage.postgres.log().matches("is not permitted to log in").count();
    within(RECOVERY, async || (refusals() > 5).then_some(())).await;
    let responds_again = || outage.service.log().join("\n").contains("PostgreSQL responds again");
    outage.assert_unavailable().await;
    assert!(!responds_again(), "no login has succeeded");
    let starting = Service::start(&outage.postgres.url().replace("postgres@", "app@"));
    assert_eq!(starting.private_client().get("/readyz").await.status, 503);
    alter("LOGIN");
    outage.assert_recovers().await;
    within(RECOVERY, async || responds_again().then_some(())).await;
}

/// Misses fail at once and hits are served, also while misses hold all permits of lookups but one.
#[tokio::test(flavor = "multi_thread")]
async fn misses_fail_at_once_during_an_outage() {
    let database = TestDatabase::migrated().await;
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
    // These open the circuit breaker.
    tokio::join!(miss(1), miss(2), miss(3), miss(4));
    let enough_hits = Arc::new(AtomicBool::new(false));
    let mut misses = JoinSet::new();
    // Of eight requests in flight six may be lookups.
    for worker in 0..5 {
        let (client, enough_hits) = (client.clone(), Arc::clone(&enough_hits));
        misses.spawn(async move {
            // At least 100, and until all hits are done.
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
            "101 hits during misses take {:?}",
            start.elapsed()
        );
    }
    enough_hits.store(true, Ordering::Relaxed);
    while let Some(done) = misses.join_next().await {
        done.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(10), "500 misses take {:?}", start.elapsed());
    proxy.listen().await;
    within(Duration::from_secs(3), async || (miss(5).await == 200).then_some(())).await;
}
