//! Metrics and traces of the running programs (docs/operations/metrics.md).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

mod collector_outages;
mod label_sets;
mod spans;

use chart_index_tests::{
    IndexerRun, Service, ServiceOptions, TestDatabase, TestRedis, indexer, indexer_command, samples, within,
};

/// A database with the sample library, and a Redis.
struct Index {
    database: TestDatabase,
    redis: TestRedis,
}

impl Index {
    async fn new() -> Self {
        let (database, redis) = (TestDatabase::migrated().await, TestRedis::create());
        indexer(database.url(), &["ingest", samples().to_str().unwrap()]).succeeded();
        Self { database, redis }
    }

    fn serve(&self, variables: &[(&str, &str)]) -> Service {
        let mut all = vec![("REDIS_URL", self.redis.url())];
        all.extend(variables);
        Service::start_with(
            self.database.url(),
            &ServiceOptions { variables: &all, ..ServiceOptions::default() },
        )
    }

    async fn chart_path(&self, service: &Service) -> String {
        let client = service.client();
        let list = client.get("/api/chartsets?perPage=1").await.json();
        let id = list["items"][0]["id"].as_str().unwrap().to_owned();
        let detail = client.get(&format!("/api/chartsets/{id}")).await.json();
        format!("/api/charts/{}", detail["charts"][0]["chart"]["hash"].as_str().unwrap())
    }
}
