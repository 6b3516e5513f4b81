//! Checks and measures lists at a constant rate during a rebuild of the index.
//!
//! ```text
//! DATABASE_URL=… MEILISEARCH_URL=… bench-rebuild [RATE]
//! ```
//!
//! It runs `chart-indexer rebuild` and requests `RATE` uncached lists per second (50 by default) from a service,
//! whether or not earlier ones have ended. It fails if any list fails, is empty or unsorted, has another total than
//! before the rebuild, or does not come from Meilisearch. The catalogue needs at least 1,500 chartsets for each filter,
//! as the first 50 pages are requested.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Client, Response, Service, ServiceOptions, indexer_command};
use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Sorts whose key is a field of the items.
const SORTS: [(&str, &str); 3] = [("bpm", "bpmMax"), ("length", "lengthMaxMs"), ("density", "densityMax")];
const ORDERS: [&str; 2] = ["desc", "asc"];
const FILTERS: [&str; 3] = ["", "&keys=4", "&keys=4,7&source=alphaSet"];

/// A list query. Numbers repeat the same pages, but every number is a different query.
#[derive(Debug, Clone, Copy)]
struct ListQuery {
    number: usize,
}

/// A defect of a list.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    NoResponse,
    Failed(u16),
    OtherEngine,
    Empty,
    Unsorted,
    OtherTotal,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let rate: f64 = std::env::args().nth(1).map_or(Ok(50.0), |rate| rate.parse())?;
    ensure!(rate.is_finite() && rate > 0.0, "RATE has to be a positive number of lists per second");
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let node = std::env::var("MEILISEARCH_URL").context("MEILISEARCH_URL is not set")?;
    let variables = [("MEILISEARCH_URL", node.as_str())];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(&database_url, &options);
    let client = service.client();

    let totals = totals(&client).await?;
    let (elapsed, results) = request_during_rebuild(&database_url, rate, &client, &totals).await?;
    Ok(report(elapsed, totals[0], &results))
}

/// The time of a list, and its defect if it has one.
type Outcome = (Duration, Option<Fault>);

/// The totals of the filters before the rebuild.
async fn totals(client: &Client) -> Result<Vec<u64>> {
    let mut totals = Vec::new();
    for filter in 0..FILTERS.len() {
        let response = client.get(&ListQuery::with_filter(filter).path()).await;
        let status = response.status;
        ensure!(is_from_meilisearch(&response), "status {status}, or another engine than Meilisearch");
        totals.push(response.json()["total"].as_u64().context("no total")?);
    }
    Ok(totals)
}

/// Runs a rebuild, and requests lists at a constant rate until it ends. Returns the time of the rebuild.
async fn request_during_rebuild(
    database_url: &str,
    rate: f64,
    client: &Client,
    totals: &[u64],
) -> Result<(Duration, Vec<Outcome>)> {
    let mut rebuild = tokio::process::Command::from(indexer_command(database_url, &["rebuild"])).spawn()?;
    let start = Instant::now();
    let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            status = rebuild.wait() => {
                ensure!(status?.success(), "the rebuild failed");
                return Ok((start.elapsed(), requests.join_all().await));
            }
            _ = ticks.tick() => {
                // The first numbers were used for the totals.
                let query = ListQuery { number: FILTERS.len() * SORTS.len() * ORDERS.len() + requests.len() };
                let (client, total) = (client.clone(), totals[query.filter()]);
                requests.spawn(async move { timed_request(&client, query, total).await });
            }
        }
    }
}

/// Prints the times and the first faults.
fn report(elapsed: Duration, chartsets: u64, results: &[Outcome]) -> ExitCode {
    let mut times: Vec<Duration> = results.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    let faults: Vec<&Fault> = results.iter().filter_map(|(_, fault)| fault.as_ref()).collect();
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (lists, fault_count) = (results.len(), faults.len());
    let [p50, p99, maximum] = [50, 99, 100].map(percentile);
    println!(
        "{lists} lists during {elapsed:.0?} of a rebuild of {chartsets} chartsets, {fault_count} faults; \
         p50 {p50:.1?}, p99 {p99:.1?}, maximum {maximum:.1?}"
    );
    for fault in faults.iter().take(20) {
        println!("{fault:?}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn timed_request(client: &Client, query: ListQuery, total: u64) -> Outcome {
    let start = Instant::now();
    let response = client.try_request(Method::GET, &query.path(), &[]).await;
    (start.elapsed(), response.map_or(Some(Fault::NoResponse), |response| query.fault(&response, total)))
}

fn is_from_meilisearch(response: &Response) -> bool {
    response.status == 200 && response.header("x-search-engine") == "meilisearch"
}

impl ListQuery {
    const fn with_filter(filter: usize) -> Self {
        Self { number: filter * SORTS.len() * ORDERS.len() }
    }

    const fn sort(self) -> (&'static str, &'static str) {
        SORTS[self.number % SORTS.len()]
    }

    const fn order(self) -> &'static str {
        ORDERS[self.number / SORTS.len() % ORDERS.len()]
    }

    const fn filter(self) -> usize {
        self.number / SORTS.len() / ORDERS.len() % FILTERS.len()
    }

    /// The lower bound of the BPM makes the query unique and excludes nothing.
    fn path(self) -> String {
        let Self { number } = self;
        let ((sort, _), order, filter) = (self.sort(), self.order(), FILTERS[self.filter()]);
        let page = 1 + number % 50;
        format!("/api/chartsets?sort={sort}&order={order}{filter}&page={page}&bpmMin=0.{number:07}1")
    }

    fn fault(self, response: &Response, total: u64) -> Option<Fault> {
        if response.status != 200 {
            return Some(Fault::Failed(response.status.as_u16()));
        }
        if !is_from_meilisearch(response) {
            return Some(Fault::OtherEngine);
        }
        let page = response.json();
        let (_, key) = self.sort();
        let keys: Vec<f64> =
            page["items"].as_array().into_iter().flatten().filter_map(|item| item[key].as_f64()).collect();
        let sorted = if self.order() == "asc" { keys.is_sorted() } else { keys.is_sorted_by(|a, b| a >= b) };
        if keys.is_empty() {
            Some(Fault::Empty)
        } else if !sorted {
            Some(Fault::Unsorted)
        } else {
            (page["total"] != total).then_some(Fault::OtherTotal)
        }
    }
}
