//! Compares the throughput of uncached lists with that of the same searches sent to Meilisearch directly.
//!
//! ```text
//! DATABASE_URL=… MEILISEARCH_URL=… [SERVICE_REDIS_URL=…] bench-lists [QUERIES] [ROUNDS]
//! ```
//!
//! Every query is different, so that none is cached. In each round a first service sends its searches through a proxy
//! that records them. Then, in alternating batches of a hundred and over as many connections, the queries go to a
//! second service and the recorded searches to Meilisearch. Both return the same documents. With `SERVICE_REDIS_URL`
//! the second service uses that Redis for its rate limits and its cache.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_benchmarks::RecordingProxy;
use chart_index_tests::{Service, ServiceOptions};
use reqwest::{Client, RequestBuilder};

/// The number of concurrent connections.
const CONNECTIONS: usize = 8;
/// The number of requests per batch. Batches alternate, so that other load on the machine affects both alike.
const BATCH: usize = 100;
/// The size of the response cache: small enough to be full after the warm-up, as in a service that has run for a while.
const CACHE_BYTES: &str = "4194304";
const SORTS: [&str; 6] = ["updated", "title", "artist", "bpm", "length", "density"];
const FILTERS: [&str; 4] =
    ["", "&keys=4", "&keys=4,7&source=alphaSet&bpmMax=240", "&lengthMin=90&densityMin=4"];

/// On one thread, to leave as much CPU time as possible to the servers.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let queries: usize = arguments.next().map_or(Ok(1_000), |queries| queries.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let node = std::env::var("MEILISEARCH_URL").context("MEILISEARCH_URL is not set")?;
    let http = chart_index_tests::http_client_builder().build()?;

    ensure!(std::env::var_os("REDIS_URL").is_none(), "unset REDIS_URL: both services would share a cache");
    let redis = std::env::var("SERVICE_REDIS_URL").ok();

    let proxy = RecordingProxy::start(&node)?;
    let recording_service = serve(&database_url, proxy.url(), None);
    let service = serve(&database_url, &node, redis.as_deref());
    let lists = |paths: &[String]| -> Vec<RequestBuilder> {
        paths.iter().map(|path| http.get(format!("http://{}{path}", service.address()))).collect()
    };
    let mut ratios = Vec::new();
    // The first round is a warm-up, which opens connections and fills the cache.
    for round in 0..=rounds {
        let paths: Vec<String> = (0..queries).map(|number| path(round * queries + number)).collect();
        let bodies = proxy.searches_of(&recording_service, &http, &paths).await?;
        ensure!(bodies.len() == queries, "{} searches for {queries} queries", bodies.len());
        let (service, direct) = alternate(lists(&paths), search_requests(&http, &node, bodies)).await?;
        if round > 0 {
            println!("round {round}: {service:.0} per second through the service, {direct:.0} directly");
            ratios.push(service / direct);
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of {rounds}: {:.1} % of the throughput of Meilisearch", 100.0 * ratios[rounds / 2]);
    Ok(())
}

/// Requests that send recorded searches to Meilisearch.
fn search_requests(http: &Client, node: &str, bodies: Vec<String>) -> Vec<RequestBuilder> {
    let url = format!("{node}/indexes/chartsets/search");
    let key = std::env::var("MEILISEARCH_API_KEY").unwrap_or_default();
    let request = |body| {
        let request = http.post(&url).header("content-type", "application/json").body(body);
        if key.is_empty() { request } else { request.bearer_auth(&key) }
    };
    bodies.into_iter().map(request).collect()
}

/// A different list query for each number: the lower bound of the BPM makes it unique and excludes nothing.
fn path(number: usize) -> String {
    let (sort, filter) = (SORTS[number % SORTS.len()], FILTERS[number / SORTS.len() % FILTERS.len()]);
    format!("/api/chartsets?sort={sort}{filter}&page={}&bpmMin=0.{number:07}1", 1 + number % 50)
}

fn serve(database_url: &str, node: &str, redis: Option<&str>) -> Service {
    let mut variables =
        vec![("MEILISEARCH_URL", node), ("SEARCH_MAX_LAG_MS", "3600000"), ("CACHE_BYTES", CACHE_BYTES)];
    variables.extend(redis.map(|redis| ("REDIS_URL", redis)));
    Service::start_with(database_url, &ServiceOptions { variables: &variables, ..ServiceOptions::default() })
}

/// The requests per second of each kind, sent in alternating batches.
async fn alternate(lists: Vec<RequestBuilder>, searches: Vec<RequestBuilder>) -> Result<(f64, f64)> {
    let count = u32::try_from(lists.len())?;
    let (mut lists, mut searches) = (lists.into_iter(), searches.into_iter());
    let (mut service, mut direct) = (Duration::ZERO, Duration::ZERO);
    let mut lists_first = true;
    while lists.len() > 0 {
        let (lists, searches) =
            (lists.by_ref().take(BATCH).collect(), searches.by_ref().take(BATCH).collect());
        if lists_first {
            service += time(lists).await?;
            direct += time(searches).await?;
        } else {
            direct += time(searches).await?;
            service += time(lists).await?;
        }
        lists_first = !lists_first;
    }
    let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
    Ok((rate(service), rate(direct)))
}

/// The time that the requests take over the concurrent connections.
async fn time(requests: Vec<RequestBuilder>) -> Result<Duration> {
    let next = Arc::new(Mutex::new(requests.into_iter()));
    let start = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                loop {
                    let request = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(request) = request else { return Ok::<_, reqwest::Error>(()) };
                    request.send().await?.error_for_status()?.bytes().await?;
                }
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(start.elapsed())
}
