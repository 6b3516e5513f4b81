//! Lists that are not cached, one after the other, by search engine.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chart_index_tests::within;
use serde::Serialize;

use crate::Effort;
use crate::catalogue::{Catalogue, Database};
use crate::replica::{Cost, Replica, ReplicaOptions, Times, median};

/// What users of a Browse page send: the first pages of each sort, filters and words from many to few matches, and some
/// later pages. The words occur in generated catalogues.
pub(crate) const QUERIES: [&str; 32] = [
    "",
    "page=2",
    "page=3",
    "page=10",
    "sort=title",
    "sort=title&page=20",
    "sort=artist",
    "sort=bpm",
    "sort=bpm&order=asc",
    "sort=length",
    "sort=density",
    "sort=density&page=5",
    "keys=4",
    "keys=7",
    "keys=7&page=4",
    "keys=4,7&sort=density",
    "keys=5,6",
    "source=alphaSet",
    "source=betaPack&sort=title",
    "creator=an",
    "creator=ana&sort=updated",
    "bpmMin=170&bpmMax=180",
    "bpmMin=300&sort=bpm",
    "lengthMin=60&lengthMax=120",
    "densityMin=10&sort=density",
    "keys=7&bpmMin=150&bpmMax=200",
    "keys=4&source=alphaSet&densityMin=20",
    "q=love",
    "q=love&page=2",
    "q=night+sky",
    "q=kirameki",
    "q=love&keys=7&bpmMin=150&sort=updated",
];
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Figures of the lists of an engine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ListRow {
    pub(crate) chartsets: u64,
    pub(crate) engine: &'static str,
    /// Whether the replica has read each list before: then it has the total of the list.
    pub(crate) total_cached: bool,
    /// Over the queries, of which each counts with its median.
    pub(crate) p50_ms: f64,
    pub(crate) slowest_ms: f64,
    pub(crate) slowest: &'static str,
    /// CPU time per list, in microseconds.
    pub(crate) cost: Cost,
    /// Responses other than 200.
    pub(crate) failed: usize,
}

/// One request for each query.
struct Pass {
    times: Vec<Duration>,
    before: Times,
    after: Times,
    failed: usize,
}

/// Measures the lists of each engine: in each round with a new replica that caches no response, first without totals.
pub(crate) async fn measure(
    catalogue: &Catalogue,
    database: &Database,
    effort: Effort,
) -> Result<Vec<ListRow>> {
    let mut rows = Vec::new();
    for engine in ["postgres", "meilisearch"] {
        let meilisearch = engine == "meilisearch";
        if meilisearch && catalogue.meilisearch.is_none() {
            continue;
        }
        let (mut first, mut next) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            let options = ReplicaOptions { uncached: true, meilisearch, ..ReplicaOptions::default() };
            let replica = Replica::start(catalogue, database, options);
            wait_for_engine(&replica, engine).await;
            first.push(pass(&replica, engine).await?);
            next.push(pass(&replica, engine).await?);
        }
        for (total_cached, passes) in [(false, first), (true, next)] {
            rows.push(ListRow::new(database.chartsets, engine, total_cached, &passes));
        }
    }
    Ok(rows)
}

/// Waits until the engine has responded to a query that is not measured.
async fn wait_for_engine(replica: &Replica<'_>, engine: &str) {
    let client = replica.service.client();
    within(READY_WITHIN, async || {
        let response = client.get("/api/chartsets?creator=nobody").await;
        (response.header("x-search-engine") == engine).then_some(())
    })
    .await;
}

async fn pass(replica: &Replica<'_>, engine: &str) -> Result<Pass> {
    let (client, before) = (replica.service.client(), replica.times()?);
    let (mut times, mut failed) = (Vec::new(), 0);
    for query in QUERIES {
        let start = Instant::now();
        let response = client.get(&format!("/api/chartsets?{query}")).await;
        times.push(start.elapsed());
        if response.status.is_success() {
            let answered_by = response.header("x-search-engine");
            ensure!(answered_by == engine, "{answered_by} instead of {engine} answered {query}");
        } else {
            failed += 1;
        }
    }
    Ok(Pass { times, before, after: replica.times()?, failed })
}

impl ListRow {
    fn new(chartsets: u64, engine: &'static str, total_cached: bool, passes: &[Pass]) -> Self {
        let milliseconds =
            |query: usize| median(passes.iter().map(|pass| pass.times[query].as_secs_f64() * 1e3));
        let medians: Vec<_> = (0..QUERIES.len()).map(milliseconds).collect();
        let slowest = (0..QUERIES.len()).max_by(|a, b| medians[*a].total_cmp(&medians[*b])).unwrap_or(0);
        // Their mean: a pass takes few ticks of CPU time.
        let costs: Vec<_> =
            passes.iter().map(|pass| pass.after.since(pass.before, QUERIES.len() as u64)).collect();
        Self {
            chartsets,
            engine,
            total_cached,
            p50_ms: median(medians.iter().copied()),
            slowest_ms: medians[slowest],
            slowest: QUERIES[slowest],
            cost: Cost::mean(&costs),
            failed: passes.iter().map(|pass| pass.failed).sum(),
        }
    }
}
