//! Uncached lists through the service against the same searches sent straight to Meilisearch.
//!
//! `bench-lists [QUERIES] [ROUNDS]` over the catalogue at `DATABASE_URL` and the node at `MEILISEARCH_URL`. No query is
//! asked twice, so that none is answered from what is kept. A first service asks those of a round through a relay that
//! notes what is sent to Meilisearch; then, a hundred at a time and by turns, the requests go to a second service and
//! the bodies that were noted go to Meilisearch, over as many connections. Both answer with the documents of the page:
//! the same bytes are asked for. With a `SERVICE_REDIS_URL` the second service has that Redis, where it limits and keeps
//! its answers.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Service, ServiceOptions};
use reqwest::{Client, RequestBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Requests under way at once.
const CONNECTIONS: usize = 8;
/// Requests that go one way before as many go the other: what else the machine does falls on both alike.
const TURN: usize = 100;
/// A memory for answers that is full when the rounds begin, as that of a service is that has run for a while.
const CACHE_BYTES: &str = "4194304";
const SORTS: [&str; 6] = ["updated", "title", "artist", "bpm", "length", "density"];
const FILTERS: [&str; 4] =
    ["", "&keys=4", "&keys=4,7&source=alphaSet&bpmMax=240", "&lengthMin=90&densityMin=4"];

type Noted = Arc<Mutex<Vec<String>>>;

/// On one thread: what asks is to take as little of the processor as it can from what answers.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let queries: usize = arguments.next().map_or(Ok(1_000), |queries| queries.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL names the catalogue")?;
    let node = std::env::var("MEILISEARCH_URL").context("MEILISEARCH_URL names the node")?;
    let http = Client::builder().no_proxy().build()?;

    ensure!(
        std::env::var_os("REDIS_URL").is_none(),
        "one Redis for both services would answer in place of the node"
    );
    let redis = std::env::var("SERVICE_REDIS_URL").ok();

    let relay = Relay::start(&node)?;
    let noting = serve(&database_url, &relay.url, None);
    let service = serve(&database_url, &node, redis.as_deref());
    let lists = |paths: &[String]| -> Vec<RequestBuilder> {
        paths.iter().map(|path| http.get(format!("http://{}{path}", service.address()))).collect()
    };
    let search = format!("{node}/indexes/chartsets/search");
    let key = std::env::var("MEILISEARCH_API_KEY").unwrap_or_default();
    let searches = |bodies: Vec<String>| -> Vec<RequestBuilder> {
        let post = |body| http.post(&search).header("content-type", "application/json").body(body);
        let with_key = |request: RequestBuilder| {
            if key.is_empty() { request } else { request.bearer_auth(&key) }
        };
        bodies.into_iter().map(post).map(with_key).collect()
    };

    let mut ratios = Vec::new();
    // A first round, of which nothing is written down: both ways have their connections and their memory then.
    for round in 0..=rounds {
        let paths: Vec<String> = (0..queries).map(|number| path(round * queries + number)).collect();
        let bodies = note_searches(&relay, &noting, &http, &paths).await?;
        ensure!(bodies.len() == queries, "{} searches for {queries} queries", bodies.len());
        let (through, straight) = by_turns(lists(&paths), searches(bodies)).await?;
        if round > 0 {
            println!("round {round}: {through:.0} a second through the service, {straight:.0} straight");
            ratios.push(through / straight);
        }
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

fn serve(database_url: &str, node: &str, redis: Option<&str>) -> Service {
    let mut variables =
        vec![("MEILISEARCH_URL", node), ("SEARCH_MAX_LAG_MS", "3600000"), ("CACHE_BYTES", CACHE_BYTES)];
    variables.extend(redis.map(|redis| ("REDIS_URL", redis)));
    Service::start_with(database_url, &ServiceOptions { variables: &variables, ..ServiceOptions::default() })
}

/// Stands between a service and Meilisearch, and notes the searches.
struct Relay {
    url: String,
    noted: Noted,
}

impl Relay {
    /// In a thread of its own, which serves while this one waits for a program to start.
    fn start(node: &str) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let noted = Noted::default();
        let relaying = relay_all(
            listener,
            node.trim_start_matches("http://").trim_end_matches('/').to_owned(),
            Arc::clone(&noted),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::spawn(move || runtime.block_on(relaying));
        Ok(Self { url, noted })
    }
}

/// What the service behind the relay sends to Meilisearch for these queries, in their order.
async fn note_searches(
    relay: &Relay,
    service: &Service,
    http: &Client,
    paths: &[String],
) -> Result<Vec<String>> {
    for path in paths {
        let answer = http.get(format!("http://{}{path}", service.address())).send().await?;
        let engine = answer.headers().get("x-search-engine").and_then(|engine| engine.to_str().ok());
        ensure!(engine == Some("meilisearch"), "{path}: {} by {engine:?}", answer.status());
        answer.bytes().await?;
    }
    Ok(std::mem::take(&mut *relay.noted.lock().unwrap_or_else(PoisonError::into_inner)))
}

async fn relay_all(relay: std::net::TcpListener, target: String, noted: Noted) -> Result<()> {
    let relay = TcpListener::from_std(relay)?;
    loop {
        let (client, _) = relay.accept().await?;
        let (target, noted) = (target.clone(), Arc::clone(&noted));
        tokio::spawn(async move { relay_one(client, &target, &noted).await });
    }
}

/// Hands everything on, and notes the bodies of searches. Requests come one after the other, each in full.
async fn relay_one(client: TcpStream, target: &str, noted: &Noted) -> Result<()> {
    let server = TcpStream::connect(target).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
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

/// Requests a second of each kind, asked by turns.
async fn by_turns(lists: Vec<RequestBuilder>, searches: Vec<RequestBuilder>) -> Result<(f64, f64)> {
    let count = u32::try_from(lists.len())?;
    let (mut lists, mut searches) = (lists.into_iter(), searches.into_iter());
    let (mut through, mut straight) = (Duration::ZERO, Duration::ZERO);
    let mut lists_first = true;
    while lists.len() > 0 {
        let (lists, searches) = (lists.by_ref().take(TURN).collect(), searches.by_ref().take(TURN).collect());
        if lists_first {
            through += time(lists).await?;
            straight += time(searches).await?;
        } else {
            straight += time(searches).await?;
            through += time(lists).await?;
        }
        lists_first = !lists_first;
    }
    let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
    Ok((rate(through), rate(straight)))
}

/// How long the requests take, so many under way at once.
async fn time(requests: Vec<RequestBuilder>) -> Result<Duration> {
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
    Ok(began.elapsed())
}
