//! A catalogue that grows, and its copy at the smallest size.

use std::time::{Duration, Instant};

use anyhow::Result;
use chart_index_benchmarks::catalogue::{CatalogueOptions, fill};
use chart_index_store::{Store, StoreConfig};
use chart_index_tests::{
    IndexerRun, PrivateMeilisearch, PrivatePostgres, PrivateRedis, TestDatabase, indexer, indexer_command,
};

const TIMEOUT: Duration = Duration::from_mins(5);
/// Charts for three chartsets, as in the defaults of `generate-catalogue`.
const CHARTS_PER_THREE: u64 = 10;

/// A database with its charts.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) chartsets: u64,
    /// The note hashes in hexadecimal, in the order in which the charts were stored.
    pub(crate) hashes: Vec<String>,
    pub(crate) bytes: u64,
}

impl Database {
    fn read(url: &str) -> Result<Self> {
        let psql = |statement| TestDatabase::psql_on(url, statement);
        Ok(Self {
            url: url.to_owned(),
            chartsets: psql("SELECT count(*) FROM chartsets WHERE shown").parse()?,
            hashes: psql("SELECT encode(hash, 'hex') FROM charts").lines().map(str::to_owned).collect(),
            bytes: psql("SELECT pg_database_size(current_database())").parse()?,
        })
    }

    /// A copy of the database on the same server.
    pub(crate) fn copy(&self) -> Self {
        let (server, name) = self.url.rsplit_once('/').unwrap_or((&self.url, "chart_index"));
        let statement = format!("CREATE DATABASE reference TEMPLATE {name} STRATEGY FILE_COPY");
        TestDatabase::psql_on(&format!("{server}/postgres"), &statement);
        Self { url: format!("{server}/reference"), ..self.clone() }
    }

    /// The hashes of charts whose ROX file has about this length.
    pub(crate) fn with_rox_bytes(&self, bytes: u64) -> Vec<String> {
        let statement = format!(
            "SELECT encode(hash, 'hex') FROM charts ORDER BY abs(rox_bytes - {bytes}), hash LIMIT 20"
        );
        TestDatabase::psql_on(&self.url, &statement).lines().map(str::to_owned).collect()
    }
}

/// The servers of the data, and the database that grows.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) postgres: PrivatePostgres,
    pub(crate) meilisearch: Option<PrivateMeilisearch>,
    chartsets: u64,
    steps: u64,
}

impl Catalogue {
    /// An empty catalogue. Without `meilisearch` on the PATH there is one search engine only.
    pub(crate) fn start() -> Self {
        let postgres = PrivatePostgres::start_without_durability();
        indexer(postgres.url(), &["migrate"]).succeeded();
        let meilisearch = PrivateMeilisearch::program()
            .is_some()
            .then(|| PrivateMeilisearch::start_with(&["--max-indexing-memory", "1GiB"]));
        Self { postgres, meilisearch, chartsets: 0, steps: 0 }
    }

    /// Grows the database to a number of chartsets, each step by another seed. Returns it and the time it took.
    pub(crate) async fn grow(&mut self, chartsets: u64) -> Result<(Database, Duration)> {
        let start = Instant::now();
        let added = chartsets.saturating_sub(self.chartsets);
        self.steps += 1;
        let options = CatalogueOptions::new(added, added * CHARTS_PER_THREE / 3, self.steps)?;
        let config = StoreConfig {
            acquire_timeout: TIMEOUT,
            statement_timeout: TIMEOUT,
            ..StoreConfig::new(self.postgres.url().parse()?)
        };
        let store = Store::new(&config);
        fill(&store, options).await?;
        store.close().await;
        self.chartsets = chartsets;
        // Otherwise autovacuum would do it during the measurements.
        TestDatabase::psql_on(self.postgres.url(), "VACUUM (ANALYZE)");
        self.rebuild_index();
        Ok((Database::read(self.postgres.url())?, start.elapsed()))
    }

    fn rebuild_index(&self) {
        if let Some(meilisearch) = &self.meilisearch {
            let mut rebuild = indexer_command(self.postgres.url(), &["rebuild"]);
            IndexerRun::run(rebuild.env("MEILISEARCH_URL", meilisearch.url())).succeeded();
        }
    }

    /// Versions of the servers, and the number of cores.
    pub(crate) fn machine(&self) -> Vec<String> {
        let version = |statement| TestDatabase::psql_on(self.postgres.url(), statement);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let redis = PrivateRedis::start(&[]).cli(&["INFO", "server"]);
        let redis = redis.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default();
        let mut machine = vec![
            format!("{cores} cores"),
            format!("PostgreSQL {}", version("SHOW server_version")),
            format!("Redis {}", redis.trim()),
        ];
        machine.extend(self.meilisearch.as_ref().map(PrivateMeilisearch::version));
        machine
    }
}
