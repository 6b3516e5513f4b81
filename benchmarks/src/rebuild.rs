//! Lists at a steady rate while the index behind them is built anew.
//!
//! `bench-rebuild [RATE]` over the catalogue at `DATABASE_URL` and the node at `MEILISEARCH_URL`: `chart-indexer rebuild`
//! beside a service that is asked for `RATE` lists a second, 50 when nothing is said, whether or not it keeps up. No
//! query is asked twice, so that none is answered from what is kept. A list counts as bad when it fails, is empty, has
//! another total than before, is not in its order, or does not come from Meilisearch; with one that is bad the program
//! fails.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Client, Response, Service, ServiceOptions, indexer_command};
use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Sorts whose key can be seen in the items.
const SORTS: [(&str, &str); 3] = [("bpm", "bpmMax"), ("length", "lengthMaxMs"), ("density", "densityMax")];
const ORDERS: [&str; 2] = ["desc", "asc"];
const FILTERS: [&str; 3] = ["", "&keys=4", "&keys=4,7&source=alphaSet"];

/// A list to ask for: the same pages over and over, each time as another query.
#[derive(Debug, Clone, Copy)]
struct Question {
    number: usize,
}

/// What is wrong with a list.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    NoAnswer,
    Failed(u16),
    StoodIn,
    Empty,
    Unsorted,
    OtherTotal,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let rate: f64 = std::env::args().nth(1).map_or(Ok(50.0), |rate| rate.parse())?;
    ensure!(rate.is_finite() && rate > 0.0, "RATE is a number of lists a second, above 0");
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL names the catalogue")?;
    let node = std::env::var("MEILISEARCH_URL").context("MEILISEARCH_URL names the node")?;
    let variables = [("MEILISEARCH_URL", node.as_str())];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(&database_url, &options);
    let client = service.client();

    let mut totals = Vec::new();
    for filter in 0..FILTERS.len() {
        let answer = client.get(&Question::of_filter(filter).path()).await;
        ensure!(is_by_meilisearch(&answer), "{} and not by Meilisearch", answer.status);
        totals.push(answer.json()["total"].as_u64().context("a total")?);
    }

    let mut rebuild = tokio::process::Command::from(indexer_command(&database_url, &["rebuild"])).spawn()?;
    let began = Instant::now();
    let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut asked = JoinSet::new();
    let ended = loop {
        tokio::select! {
            ended = rebuild.wait() => break ended?,
            _ = ticks.tick() => {
                // Those of the totals were the first.
                let question = Question { number: FILTERS.len() * SORTS.len() * ORDERS.len() + asked.len() };
                let (client, total) = (client.clone(), totals[question.filter()]);
                asked.spawn(async move { ask(&client, question, total).await });
            }
        }
    };
    let took = began.elapsed();
    ensure!(ended.success(), "the rebuild failed");

    let asked = asked.join_all().await;
    let mut times: Vec<Duration> = asked.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    let faults: Vec<&Fault> = asked.iter().filter_map(|(_, fault)| fault.as_ref()).collect();
    let quantile = |hundredths: usize| times[(times.len() - 1) * hundredths / 100];
    println!(
        "{} lists in {took:.0?} of a rebuild of {} sets, {} bad; half of them within {:.1?}, 99 % within {:.1?}, all within {:.1?}",
        asked.len(),
        totals[0],
        faults.len(),
        quantile(50),
        quantile(99),
        quantile(100),
    );
    for fault in faults.iter().take(20) {
        println!("{fault:?}");
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(client: &Client, question: Question, total: u64) -> (Duration, Option<Fault>) {
    let begun = Instant::now();
    let answer = client.try_request(Method::GET, &question.path(), &[]).await;
    (begun.elapsed(), answer.map_or(Some(Fault::NoAnswer), |answer| question.fault(&answer, total)))
}

fn is_by_meilisearch(answer: &Response) -> bool {
    answer.status == 200 && answer.header("x-search-engine") == "meilisearch"
}

impl Question {
    const fn of_filter(filter: usize) -> Self {
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

    /// Its lowest BPM excludes nothing and is no other question's.
    fn path(self) -> String {
        let Self { number } = self;
        let ((sort, _), order, filter) = (self.sort(), self.order(), FILTERS[self.filter()]);
        let page = 1 + number % 50;
        format!("/api/chartsets?sort={sort}&order={order}{filter}&page={page}&bpmMin=0.{number:07}1")
    }

    fn fault(self, answer: &Response, total: u64) -> Option<Fault> {
        if answer.status != 200 {
            return Some(Fault::Failed(answer.status.as_u16()));
        }
        if !is_by_meilisearch(answer) {
            return Some(Fault::StoodIn);
        }
        let page = answer.json();
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
