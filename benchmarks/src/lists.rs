//! Uncached lists through the service against the same searches sent straight to Meilisearch.
//!
//! `bench-lists [QUERIES] [ROUNDS]` over the catalogue at `DATABASE_URL` and the node at `MEILISEARCH_URL`. Every query
//! of a round is another one, so that none is answered from what is kept. A first service asks them through a relay that
//! notes what is sent to Meilisearch; then, round by round and by turns, the requests go to a service and the bodies that
//! were noted go to Meilisearch, over as many connections. Both answer with the documents of the page: the same bytes
//! are asked for.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Service, ServiceOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Requests under way at once.
const CONNECTIONS: usize = 8;
const SORTS: [&str; 6] = ["updated", "title", "artist", "bpm", "length", "density"];
const FILTERS: [&str; 4] =
    ["", "&keys=4", "&keys=4,7&source=alphaSet&bpmMax=240", "&lengthMin=90&densityMin=4"];

type Noted = Arc<Mutex<Vec<String>>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let queries: usize = arguments.next().map_or(Ok(1_000), |queries| queries.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL names the catalogue")?;
    let node = std::env::var("MEILISEARCH_URL").context("MEILISEARCH_URL names the node")?;
    let http = reqwest::Client::builder().no_proxy().build()?;

    let mut ratios = Vec::new();
    for round in 0..rounds {
        let paths: Vec<String> = (0..queries).map(|number| path(round * queries + number)).collect();
        let bodies = note_searches(&database_url, &node, &http, &paths).await?;
        ensure!(bodies.len() == queries, "{} searches for {queries} queries", bodies.len());
        let service = serve(&database_url, &node);
        let base = format!("http://{}", service.address());
        let gets = paths.iter().map(|path| http.get(format!("{base}{path}"))).collect();
        let search = format!("{node}/indexes/chartsets/search");
        let key = std::env::var("MEILISEARCH_API_KEY").unwrap_or_default();
        let post = |body: String| {
            let request = http.post(&search).header("content-type", "application/json").body(body);
            if key.is_empty() { request } else { request.bearer_auth(&key) }
        };
        let posts = bodies.into_iter().map(post).collect();
        let (through, straight) = if round % 2 == 0 {
            let through = rate(gets).await?;
            (through, rate(posts).await?)
        } else {
            let straight = rate(posts).await?;
            (rate(gets).await?, straight)
        };
        println!("round {}: {through:.0} a second through the service, {straight:.0} straight", round + 1);
        ratios.push(through / straight);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of {rounds}: {:.1} % of the throughput of Meilisearch", 100.0 * ratios[rounds / 2]);
    Ok(())
}

/// A query that no other number has: its lowest BPM excludes nothing.
fn path(number: usize) -> String {
    let (sort, filter) = (SORTS[number % SORTS.len()], FILTERS[number / SORTS.len() % FILTERS.len()]);
    format!("/api/chartsets?sort={sort}{filter}&page={}&bpmMin=0.{number:07}1", 1 + number % 50)
}

fn serve(database_url: &str, node: &str) -> Service {
    let variables = [("MEILISEARCH_URL", node), ("SEARCH_MAX_LAG_MS", "3600000")];
    Service::start_with(database_url, &ServiceOptions { variables: &variables, ..ServiceOptions::default() })
}

/// What the service sends to Meilisearch for these queries, in their order.
async fn note_searches(
    database_url: &str,
    node: &str,
    http: &reqwest::Client,
    paths: &[String],
) -> Result<Vec<String>> {
    let noted = Noted::default();
    let relay = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", relay.local_addr()?);
    let target = node.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let relaying = tokio::spawn(relay_all(relay, target, Arc::clone(&noted)));
    let service = serve(database_url, &address);
    for path in paths {
        let answer = http.get(format!("http://{}{path}", service.address())).send().await?;
        let engine = answer.headers().get("x-search-engine").and_then(|engine| engine.to_str().ok());
        ensure!(engine == Some("meilisearch"), "{path}: {} by {engine:?}", answer.status());
        answer.bytes().await?;
    }
    relaying.abort();
    let bodies = std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(bodies)
}

async fn relay_all(relay: TcpListener, target: String, noted: Noted) {
    while let Ok((client, _)) = relay.accept().await {
        let (target, noted) = (target.clone(), Arc::clone(&noted));
        tokio::spawn(async move { relay_one(client, &target, &noted).await });
    }
}

/// Hands everything on, and notes the bodies of searches. Requests come one after the other, each in full.
async fn relay_one(client: TcpStream, target: &str, noted: &Noted) -> Result<()> {
    let server = TcpStream::connect(target).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut open = Vec::new();
    loop {
        let read = from_client.read_buf(&mut open).await?;
        if read == 0 {
            return Ok(());
        }
        to_server.write_all(&open[open.len() - read..]).await?;
        while let Some((head, body)) = whole_request(&open) {
            open.drain(..head.len() + 4 + body.len());
            if head.starts_with("POST ") && head.contains("/search ") {
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(body);
            }
        }
    }
}

/// The head and the body of the first request, once both are there.
fn whole_request(bytes: &[u8]) -> Option<(String, String)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let body = bytes.get(end + 4..end + 4 + length.unwrap_or(0))?;
    Some((head, String::from_utf8_lossy(body).into_owned()))
}

/// Requests a second.
async fn rate(requests: Vec<reqwest::RequestBuilder>) -> Result<f64> {
    let count = u32::try_from(requests.len())?;
    let next = Arc::new(Mutex::new(requests.into_iter()));
    let began = Instant::now();
    let askers: Vec<_> = (0..CONNECTIONS)
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
    for asker in askers {
        asker.await??;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}
