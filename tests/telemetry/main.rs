//! Metrics and traces of the running programs (docs/operations/metrics.md).
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

mod collector_outages;
mod label_sets;
mod spans;

use chart_index_tests::{
    ChartSpec, IndexerRun, Library, Service, ServiceOptions, TestDatabase, TestRedis, indexer,
    indexer_command, within,
};

/// A database with a chart, and a Redis.
struct Index {
    database: TestDatabase,
    redis: TestRedis,
    /// The path of the lookup of the chart.
    chart: String,
}

impl Index {
    async fn new() -> Self {
        let (database, redis, library) =
            (TestDatabase::migrated().await, TestRedis::create(), Library::new());
        let hash = library.osu("alpha/1 one/a.osu", ChartSpec::default()).note_hash();
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        Self { database, redis, chart: format!("/api/charts/{hash}") }
    }

    fn serve(&self, variables: &[(&str, &str)]) -> Service {
        let mut all = vec![("REDIS_URL", self.redis.url())];
        all.extend(variables);
        Service::start_with(
            self.database.url(),
            &ServiceOptions { variables: &all, ..ServiceOptions::default() },
        )
    }
}
