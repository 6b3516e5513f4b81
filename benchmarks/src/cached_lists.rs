//! Measures the CPU time of a cached list: uncompressed, compressed with gzip, and as a 304.
//!
//! ```text
//! DATABASE_URL=… bench-cached-lists [REQUESTS] [ROUNDS]
//! ```
//!
//! The database has a catalogue of more than one page. Each round requests the first page `REQUESTS` times without
//! `Accept-Encoding`, as often with that of a browser, and as often with `If-None-Match` as well, from a service
//! without Redis. The result is the CPU time of the service per request (`utime` and `stime` of `/proc/<pid>/stat`),
//! which depends less on the load of the machine than elapsed time does.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_tests::{Service, ServiceOptions};
use reqwest::{Client, StatusCode};

/// The number of concurrent connections.
const CONNECTIONS: usize = 8;
const LIST: &str = "/api/chartsets";
/// The `Accept-Encoding` of a browser.
const BROWSER_ENCODINGS: &str = "gzip, deflate, br, zstd";

/// A kind of request, and the status of its response.
#[derive(Clone)]
struct RequestKind {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    status: StatusCode,
}

/// On one thread, to leave as much CPU time as possible to the service.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let requests: usize = arguments.next().map_or(Ok(50_000), |requests| requests.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let database_url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let service = Service::start_with(&database_url, &ServiceOptions::default());
    let http = chart_index_tests::http_client_builder().build()?;
    let url = format!("http://{}{LIST}", service.address());

    let kinds = request_kinds(&http, &url).await?;
    let mut times = vec![Vec::new(); kinds.len()];
    // The first round is a warm-up.
    for round in 0..=rounds {
        for (kind, times) in kinds.iter().zip(&mut times) {
            let before = cpu_time(service.process_id())?;
            send(&http, &url, kind, requests).await?;
            let spent = cpu_time(service.process_id())?.saturating_sub(before);
            if round > 0 {
                let microseconds = 1e6 * spent.as_secs_f64() / f64::from(u32::try_from(requests)?);
                println!("round {round}, {}: {microseconds:.1} us per request", kind.name);
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

/// The kinds of requests, after a check that the list is compressed.
async fn request_kinds(http: &Client, url: &str) -> Result<[RequestKind; 3]> {
    let gzip = http.get(url).header("accept-encoding", BROWSER_ENCODINGS).send().await?.error_for_status()?;
    let tag = gzip.headers().get("etag").context("no ETag")?.to_str()?.to_owned();
    let (plain, gzip) = (http.get(url).send().await?.bytes().await?.len(), gzip.bytes().await?.len());
    println!("{plain} bytes, {gzip} with gzip");
    ensure!(gzip < plain, "the list is too short to be compressed");

    let browser = ("accept-encoding", BROWSER_ENCODINGS.to_owned());
    Ok([
        RequestKind { name: "plain", headers: Vec::new(), status: StatusCode::OK },
        RequestKind { name: "gzip", headers: vec![browser.clone()], status: StatusCode::OK },
        RequestKind {
            name: "gzip 304",
            headers: vec![browser, ("if-none-match", tag)],
            status: StatusCode::NOT_MODIFIED,
        },
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Sends `requests` requests, a few at a time.
async fn send(http: &Client, url: &str, kind: &RequestKind, requests: usize) -> Result<()> {
    let remaining = Arc::new(AtomicUsize::new(requests));
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (http, url, kind, remaining) =
                (http.clone(), url.to_owned(), kind.clone(), Arc::clone(&remaining));
            tokio::spawn(async move {
                let take = |remaining: usize| remaining.checked_sub(1);
                while remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    let mut request = http.get(&url);
                    for (name, value) in &kind.headers {
                        request = request.header(*name, value);
                    }
                    let response = request.send().await?;
                    ensure!(response.status() == kind.status, "{}: {}", kind.name, response.status());
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

/// The CPU time of a process: fields 14 and 15 of its `stat`, in ticks of 10 ms. A round should take at least a second.
fn cpu_time(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program is the second field, in parentheses, and may contain spaces.
    let (_, fields) = stat.rsplit_once(") ").context("no program name")?;
    let mut fields = fields.split(' ').skip(11).map(str::parse::<u64>);
    let mut next = || fields.next().context("no CPU time");
    Ok(Duration::from_millis(10 * (next()?? + next()??)))
}
