//! PostgreSQL goes away and comes back under requests.

use std::time::{Duration, Instant};

use chart_index_tests::PrivatePostgres;

use super::*;

/// How soon the service must have found PostgreSQL again.
const RECOVERY: Duration = Duration::from_secs(15);

struct Outage {
    postgres: PrivatePostgres,
    service: Service,
    paths: Vec<String>,
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
            format!("/api/charts/{chart}"),
            format!("/api/charts/{chart}/rox"),
            format!("/api/charts/{unknown}"),
            format!("/api/charts/{unknown}/rox"),
            "/api/chartsets".into(),
            format!("/api/chartsets/{id}"),
            format!("/go/chartset/{id}"),
        ];
        Self { postgres, service, paths }
    }

    /// "503 problem with `Retry-After`, never `unknown` or 404"
    async fn assert_unavailable(&self) {
        for path in &self.paths {
            let answer = self.service.client().get(path).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("content-type")),
                (503, "application/problem+json"),
                "{path}"
            );
            assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds >= 1), "{path}");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
        assert_eq!(self.service.private_client().get("/readyz").await.status, 503);
        assert_eq!(self.service.private_client().get("/livez").await.status, 200);
    }

    /// Recovery by itself: within a bound, and from then on every answer is right.
    async fn assert_recovers(&self) {
        let since = Instant::now();
        let expected = [200, 200, 200, 404, 200, 200, 302];
        for (path, expected) in self.paths.iter().zip(expected) {
            loop {
                let status = self.service.client().get(path).await.status.as_u16();
                if status == expected {
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
    outage.assert_recovers().await;
    outage.postgres.kill();
    outage.assert_unavailable().await;
    outage.postgres.restart();
    outage.assert_recovers().await;
}

#[tokio::test]
async fn a_frozen_postgresql_is_an_outage_within_the_deadline() {
    let outage = Outage::new().await;
    outage.assert_recovers().await;
    outage.postgres.freeze();
    let since = Instant::now();
    let answer = outage.service.client().get(&outage.paths[0]).await;
    assert_eq!(answer.status, 503);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    outage.postgres.thaw();
    outage.assert_recovers().await;
}

/// "The server starts while it is away."
#[tokio::test]
async fn the_service_starts_while_postgresql_is_away() {
    let mut outage = Outage::new().await;
    outage.postgres.kill();
    outage.service = Service::start(outage.postgres.url());
    outage.assert_unavailable().await;
    outage.postgres.restart();
    outage.assert_recovers().await;
}
