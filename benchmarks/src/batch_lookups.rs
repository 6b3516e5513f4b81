//! Measures batch lookups beside as many single lookups.
//!
//! ```text
//! bench-batch-lookups [ROUNDS]
//! ```
//!
//! It starts PostgreSQL and Redis, and fills a catalogue. Each round asks for 10,000 charts, half of them unknown, which no
//! cache has: in 10 batch lookups, and as many others in 10,000 single lookups. Then it asks for the same ones again, which
//! the caches have. The result is the CPU time per hash of the service, Redis and PostgreSQL together; it depends less on the
//! load of the machine than elapsed time does.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_benchmarks::catalogue::{CatalogueOptions, fill};
use chart_index_benchmarks::processes::cpu_time;
use chart_index_store::{Store, StoreConfig};
use chart_index_tests::{PrivatePostgres, PrivateRedis, Service, ServiceOptions, TestDatabase, indexer};
use fastrand::Rng;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

/// The hashes of a round, half of them unknown.
const HASHES: usize = 10_000;
/// The hashes of a batch lookup: the most that it takes.
const BATCH: usize = 1_000;
/// The number of concurrent connections of single lookups.
const CONNECTIONS: usize = 8;
/// No request is refused.
const UNLIMITED: &str = "1000000000";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(5), |rounds| rounds.parse())?;
    let servers = Servers::start(rounds).await?;
    let mut known = servers.known_hashes();
    let mut random = Rng::with_seed(1);
    random.shuffle(&mut known);
    let mut ratios = vec![Vec::new(); 2];
    for round in 1..=rounds {
        let mut take = || hashes_of_round(&mut known, &mut random);
        let (batches, singles) = (take()?, take()?);
        for (ratios, state) in ratios.iter_mut().zip(["not cached", "cached"]) {
            let (batch, single) = if round % 2 == 0 {
                let single = servers.cost(servers.send_singles(&singles)).await?;
                (servers.cost(servers.send_batches(&batches)).await?, single)
            } else {
                let batch = servers.cost(servers.send_batches(&batches)).await?;
                (batch, servers.cost(servers.send_singles(&singles)).await?)
            };
            println!("round {round}, {state}: batch {batch}; single {single}");
            ratios.push(batch.total() / single.total());
        }
    }
    for (ratios, state) in ratios.iter_mut().zip(["not cached", "cached"]) {
        ratios.sort_by(f64::total_cmp);
        println!("{state}: a batch lookup takes {:.3} of the CPU time of single lookups", ratios[rounds / 2]);
    }
    Ok(())
}

/// Takes half of the hashes of a round from the known ones, and adds as many unknown ones.
fn hashes_of_round(known: &mut Vec<String>, random: &mut Rng) -> Result<Vec<String>> {
    let rest = known.len().checked_sub(HASHES / 2).context("the catalogue is too small")?;
    let mut hashes = known.split_off(rest);
    hashes.extend((0..HASHES / 2).map(|_| format!("{:032x}{:032x}", random.u128(..), random.u128(..))));
    random.shuffle(&mut hashes);
    Ok(hashes)
}

/// The servers under measurement.
struct Servers {
    postgres: PrivatePostgres,
    redis: PrivateRedis,
    service: Service,
    http: Client,
}

impl Servers {
    async fn start(rounds: usize) -> Result<Self> {
        let postgres = PrivatePostgres::start_without_durability();
        indexer(postgres.url(), &["migrate"]).succeeded();
        let charts = u64::try_from((rounds + 1) * HASHES)?;
        let store = Store::new(&StoreConfig::new(postgres.url().parse()?));
        fill(&store, CatalogueOptions::new(charts * 3 / 10, charts, 1)?).await?;
        store.close().await;
        TestDatabase::psql_on(postgres.url(), "VACUUM (ANALYZE)");
        let redis = PrivateRedis::start(&[]);
        let redis_url = redis.url();
        let variables = [
            ("REDIS_URL", redis_url.as_str()),
            ("RATE_LIMIT_LOOKUP", UNLIMITED),
            ("RATE_LIMIT_BULK", UNLIMITED),
        ];
        let options =
            ServiceOptions { variables: &variables, leave_log_unread: true, ..ServiceOptions::default() };
        let service = Service::start_with(postgres.url(), &options);
        let http = chart_index_tests::http_client_builder().build()?;
        Ok(Self { postgres, redis, service, http })
    }

    fn known_hashes(&self) -> Vec<String> {
        let hashes = TestDatabase::psql_on(self.postgres.url(), "SELECT encode(hash, 'hex') FROM charts");
        hashes.lines().map(str::to_owned).collect()
    }

    /// The CPU time of each server while `requests` are sent, per hash.
    async fn cost(&self, requests: impl Future<Output = Result<()>>) -> Result<Cost> {
        let before = self.times()?;
        requests.await?;
        let after = self.times()?;
        let hashes = f64::from(u32::try_from(HASHES)?);
        let mut each = before
            .iter()
            .zip(after)
            .map(|(before, after)| after.saturating_sub(*before).as_secs_f64() * 1e6 / hashes);
        let mut next = || each.next().context("three servers");
        Ok(Cost { service: next()?, redis: next()?, postgres: next()? })
    }

    fn times(&self) -> Result<[Duration; 3]> {
        Ok([
            cpu_time(self.service.process_id())?,
            cpu_time(self.redis.process_id().parse()?)?,
            cpu_time(self.postgres.process_id().context("PostgreSQL has ended")?)?,
        ])
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/charts/{path}", self.service.address())
    }

    async fn send_batches(&self, hashes: &[String]) -> Result<()> {
        for batch in hashes.chunks(BATCH) {
            let request = self.http.post(self.url("lookup")).header("content-type", "application/json");
            let response = request.body(json!({ "hashes": batch }).to_string()).send().await?;
            ensure!(response.status() == StatusCode::OK, "batch lookup: {}", response.status());
            let body: Value = serde_json::from_slice(&response.bytes().await?)?;
            let items = body["items"].as_array().context("no items")?;
            ensure!(items.len() == batch.len(), "{} items", items.len());
        }
        Ok(())
    }

    async fn send_singles(&self, hashes: &[String]) -> Result<()> {
        let clients: Vec<_> = hashes
            .chunks(hashes.len().div_ceil(CONNECTIONS))
            .map(|hashes| {
                let (http, urls) =
                    (self.http.clone(), hashes.iter().map(|hash| self.url(hash)).collect::<Vec<_>>());
                tokio::spawn(async move {
                    for url in urls {
                        let response = http.get(url).send().await?;
                        ensure!(response.status() == StatusCode::OK, "lookup: {}", response.status());
                        response.bytes().await?;
                    }
                    Ok(())
                })
            })
            .collect();
        for client in clients {
            client.await??;
        }
        Ok(())
    }
}

/// CPU time per hash in microseconds.
struct Cost {
    service: f64,
    redis: f64,
    postgres: f64,
}

impl Cost {
    fn total(&self) -> f64 {
        self.service + self.redis + self.postgres
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { service, redis, postgres } = self;
        write!(
            formatter,
            "{:.1} us (service {service:.1}, Redis {redis:.1}, PostgreSQL {postgres:.1})",
            self.total()
        )
    }
}
