//! The processor time of a cached list, plain and in gzip.
//!
//! `bench-cached-lists [REQUESTS] [ROUNDS]` over the catalogue at `DATABASE_URL`, which has more than a page of chartsets.
//! A service without Redis answers the first page again and again, over a few connections: so many requests without
//! `Accept-Encoding`, as many with that of a browser, as many of those with the tag that the browser has, and so on. What
//! is printed is the time that the service spent on a processor (`utime` and `stime` of `/proc/<pid>/stat`) by request:
//! other processes make a round longer, but hardly more expensive.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Service, ServiceOptions};
use reqwest::{Client, StatusCode};

/// Connections that ask at once.
const CONNECTIONS: usize = 8;
const LIST: &str = "/api/chartsets";
/// What browsers send.
const BROWSER: &str = "gzip, deflate, br, zstd";

/// What is asked for in a turn.
#[derive(Clone)]
struct Request {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    status: StatusCode,
}

/// On one thread: what asks is to take as little of the processor as it can from what answers.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let requests: usize = arguments.next().map_or(Ok(50_000), |requests| requests.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL names the catalogue")?;
    let service = Service::start_with(&database_url, &ServiceOptions::default());
    let http = Client::builder().no_proxy().build()?;
    let url = format!("http://{}{LIST}", service.address());

    let gzip = http.get(&url).header("accept-encoding", BROWSER).send().await?.error_for_status()?;
    let tag = gzip.headers().get("etag").context("a tag")?.to_str()?.to_owned();
    let (plain, gzip) = (http.get(&url).send().await?.bytes().await?.len(), gzip.bytes().await?.len());
    println!("{plain} bytes, {gzip} in gzip");
    ensure!(gzip < plain, "the list is too short to be compressed");

    let browser = ("accept-encoding", BROWSER.to_owned());
    let kinds = [
        Request { name: "plain", headers: Vec::new(), status: StatusCode::OK },
        Request { name: "gzip", headers: vec![browser.clone()], status: StatusCode::OK },
        Request {
            name: "gzip 304",
            headers: vec![browser, ("if-none-match", tag)],
            status: StatusCode::NOT_MODIFIED,
        },
    ];
    let mut times = vec![Vec::new(); kinds.len()];
    // A first round, of which nothing is written down.
    for round in 0..=rounds {
        for (kind, times) in kinds.iter().zip(&mut times) {
            let before = processor_time(service.process_id())?;
            ask(&http, &url, kind, requests).await?;
            let spent = processor_time(service.process_id())?.saturating_sub(before);
            if round > 0 {
                let microseconds = 1e6 * spent.as_secs_f64() / f64::from(u32::try_from(requests)?);
                println!("round {round}, {}: {microseconds:.1} us a request", kind.name);
                times.push(microseconds);
            }
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (kind, median) in kinds.iter().zip(&medians) {
        println!("{}: median {median:.1} us, {:.0} % of plain", kind.name, 100.0 * median / medians[0]);
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// So many requests, a few at once.
async fn ask(http: &Client, url: &str, kind: &Request, requests: usize) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(requests));
    let askers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (http, url, kind, left) = (http.clone(), url.to_owned(), kind.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    let mut request = http.get(&url);
                    for (name, value) in &kind.headers {
                        request = request.header(*name, value);
                    }
                    let answer = request.send().await?;
                    ensure!(answer.status() == kind.status, "{}: {}", kind.name, answer.status());
                    answer.bytes().await?;
                }
                Ok(())
            })
        })
        .collect();
    for asker in askers {
        asker.await??;
    }
    Ok(())
}

/// The time that a process has spent on a processor, by fields 14 and 15 of its `stat`: in ticks of 10 ms, so a turn is
/// to have requests for a second.
fn processor_time(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program comes second, in parentheses, and may hold anything.
    let (_, fields) = stat.rsplit_once(") ").context("a name")?;
    let mut fields = fields.split(' ').skip(11).map(str::parse::<u64>);
    let mut next = || fields.next().context("a time");
    Ok(Duration::from_millis(10 * (next()?? + next()??)))
}
