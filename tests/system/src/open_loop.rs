//! Open-loop load: requests start on a schedule, however long the responses take.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{HeaderValue, InvalidHeaderValue};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// Requests that start at a fixed rate. Each latency is measured from the time at which the request should have
/// started, so that a slow server cannot hide its delays by receiving fewer requests (coordinated omission).
///
/// Requests have no retries and use HTTP/1.1 connections with keep-alive.
#[derive(Debug, Clone)]
pub struct OpenLoop {
    /// The server: a loopback address, or one in a network namespace of the test.
    pub address: SocketAddr,
    /// Who sends the requests.
    pub senders: Senders,
    /// The paths, with query strings, which are requested in turn.
    pub paths: Vec<String>,
    /// Requests per second, up to 20,000.
    pub rate: u32,
    /// The number of requests after which the load ends.
    pub requests: u64,
    /// Requests that should start before this time, counted from the start of the load, are sent and not
    /// counted.
    pub warm_up: Duration,
    /// Maximum requests in flight. Those that should start above it are counted as not sent.
    pub max_in_flight: usize,
    /// Maximum duration of a request, from its start to the end of its body.
    pub timeout: Duration,
}

/// The clients as which a load sends its requests, in turn.
#[derive(Debug, Clone)]
pub enum Senders {
    /// 4,096 addresses of 10.0.0.0/8 in `X-Forwarded-For`: where the server trusts the loopback address, these
    /// are its clients.
    Forwarded,
    /// These addresses of the machine, each with connections of its own.
    Local(Vec<Ipv4Addr>),
}

/// Requests that are being sent, in a thread with its own runtime. Dropping the value stops them.
#[derive(Debug)]
pub struct Load {
    start: Instant,
    started: Arc<AtomicU64>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<LoadOutcome>,
}

/// What happened to the requests of a load.
#[derive(Debug, Default)]
pub struct LoadOutcome {
    /// The latencies of complete responses by status code, in ascending order.
    pub latencies: BTreeMap<u16, Vec<Duration>>,
    /// Requests without a complete response: the connection failed, or the timeout expired.
    pub errors: u64,
    /// Requests that were not sent, because of the maximum in flight.
    pub not_sent: u64,
    /// Examples of responses other than 200 and of errors, with the time since the start.
    pub examples: Vec<String>,
    /// Every request that was sent and counted.
    pub samples: Vec<Sample>,
}

/// One request of a load.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it should have started, counted from the start of the load.
    pub intended: Duration,
    /// The status of a complete response; `None` without one.
    pub status: Option<u16>,
    /// The time from when it should have started to the end of the response or the error.
    pub latency: Duration,
}

/// The result of one request: its status and latency, or an error.
#[derive(Debug)]
struct Completed {
    path: String,
    /// When the request should have started, counted from the start of the load.
    intended: Duration,
    result: Result<u16, String>,
    latency: Duration,
}

type HttpClient = Client<HttpConnector, String>;

/// Client addresses in `X-Forwarded-For`.
const CLIENTS: u32 = 4096;

/// The longest schedule of a load.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// Idle connections are closed after this time, before servers and proxies close them: a request that is sent
/// on a connection while it is closed would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum examples that an outcome keeps.
const MAX_EXAMPLES: usize = 20;

impl OpenLoop {
    /// A load of 200 requests per second, up to 10,000 requests, with a timeout of 10 s.
    pub fn new(address: SocketAddr, paths: Vec<String>) -> Self {
        let timeout = Duration::from_secs(10);
        let (rate, requests, max_in_flight) = (200, 10_000, 4096);
        let (senders, warm_up) = (Senders::Forwarded, Duration::ZERO);
        Self { address, senders, paths, rate, requests, warm_up, max_in_flight, timeout }
    }

    /// Starts the load. Panics unless it is bounded, and on the loopback address or in another network
    /// namespace than that of the process.
    pub fn start(self) -> Load {
        let private = self.address.ip().is_loopback() || is_in_other_namespace();
        assert!(private, "{} is not a loopback address", self.address);
        assert!((1..=20_000).contains(&self.rate), "a rate of {} per second", self.rate);
        assert!(self.start_of(self.requests) <= MAX_DURATION, "the schedule is too long");
        assert!(!self.paths.is_empty(), "no paths");
        let (stop, stopped) = oneshot::channel();
        let start = Instant::now();
        let started = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&started);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let thread = thread::spawn(move || runtime.block_on(self.send(start, &counter, stopped)));
        Load { start, started, stop, thread }
    }

    async fn send(
        self,
        start: Instant,
        started: &AtomicU64,
        mut stopped: oneshot::Receiver<()>,
    ) -> LoadOutcome {
        let senders = self.senders.clients().expect("addresses are header values");
        let (mut outcome, mut in_flight) = (LoadOutcome::default(), JoinSet::new());
        let schedule = self.paths.iter().cycle().zip(senders.iter().cycle());
        for (number, (path, (client, client_address))) in (0..self.requests).zip(schedule) {
            let intended = self.start_of(number);
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = sleep_until(start + intended) => started.fetch_add(1, Ordering::Relaxed),
            };
            while let Some(completed) = in_flight.try_join_next() {
                outcome.count(&completed.expect("a request does not panic"), self.warm_up);
            }
            if in_flight.len() >= self.max_in_flight {
                outcome.not_sent += u64::from(intended >= self.warm_up);
                continue;
            }
            let request = self.request(path, client_address.as_ref());
            let (client, path, limit) = (client.clone(), path.clone(), self.timeout);
            in_flight.spawn(async move {
                let result = timeout(limit, complete(&client, request)).await;
                let result = result.unwrap_or_else(|_| Err("timeout".to_owned()));
                Completed { path, intended, result, latency: start.elapsed().saturating_sub(intended) }
            });
        }
        while let Some(completed) = in_flight.join_next().await {
            outcome.count(&completed.expect("a request does not panic"), self.warm_up);
        }
        outcome.latencies.values_mut().for_each(|latencies| latencies.sort_unstable());
        outcome
    }

    fn request(&self, path: &str, client_address: Option<&HeaderValue>) -> Request<String> {
        let mut request = Request::get(format!("http://{}{path}", self.address));
        if let Some(client_address) = client_address {
            request = request.header("x-forwarded-for", client_address);
        }
        request.body(String::new()).expect("a path makes a valid request")
    }

    /// When the request with this number should start, counted from the start of the load.
    fn start_of(&self, number: u64) -> Duration {
        Duration::from_nanos(number.saturating_mul(1_000_000_000) / u64::from(self.rate))
    }
}

impl Senders {
    /// A client for each sender, with the address that it has to send.
    fn clients(&self) -> Result<Vec<(HttpClient, Option<HeaderValue>)>, InvalidHeaderValue> {
        match self {
            Self::Forwarded => {
                let shared = client(None);
                let first = Ipv4Addr::new(10, 0, 0, 0).to_bits();
                let addresses =
                    (0..CLIENTS).map(|number| Ipv4Addr::from_bits(first + number).to_string().parse());
                addresses.map(|address| Ok((shared.clone(), Some(address?)))).collect()
            }
            Self::Local(addresses) => {
                Ok(addresses.iter().map(|address| (client(Some(*address)), None)).collect())
            }
        }
    }
}

/// Whether this thread is in another network namespace than the process.
fn is_in_other_namespace() -> bool {
    let namespaces = ["/proc/self/ns/net", "/proc/thread-self/ns/net"].map(std::fs::read_link);
    matches!(namespaces, [Ok(process), Ok(thread)] if process != thread)
}

impl Load {
    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The number of requests that were to start so far.
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// The number of requests whose start time has come.
    pub fn stop(self) -> LoadOutcome {
        drop(self.stop);
        self.thread.join().expect("the load does not panic")
    }

    /// Waits for all requests.
    pub fn finish(self) -> LoadOutcome {
        let outcome = self.thread.join().expect("the load does not panic");
        drop(self.stop);
        outcome
    }
}

impl LoadOutcome {
    /// The number of requests whose start time came during the load.
    pub fn requests(&self) -> u64 {
        let responses: usize = self.latencies.values().map(Vec::len).sum();
        responses as u64 + self.errors + self.not_sent
    }

    /// The number of complete responses with this status.
    pub fn count_of(&self, status: u16) -> u64 {
        self.latencies.get(&status).map_or(0, |latencies| latencies.len() as u64)
    }

    /// A quantile of the latency of the responses with this status, in thousandths: 990 is p99, 1000 the
    /// maximum. `None` if there are no such responses.
    pub fn latency(&self, status: u16, thousandths: usize) -> Option<Duration> {
        let latencies = self.latencies.get(&status)?;
        let rank = (latencies.len() * thousandths).div_ceil(1000);
        latencies.get(rank.saturating_sub(1)).copied()
    }

    fn count(&mut self, completed: &Completed, warm_up: Duration) {
        let Completed { path, intended, result, latency } = completed;
        if *intended < warm_up {
            return;
        }
        let status = result.as_ref().ok().copied();
        self.samples.push(Sample { intended: *intended, status, latency: *latency });
        if !matches!(result, Ok(200)) && self.examples.len() < MAX_EXAMPLES {
            self.examples.push(format!("at {intended:.3?}: {path}: {result:?} after {latency:.1?}"));
        }
        match status {
            Some(status) => self.latencies.entry(status).or_default().push(*latency),
            None => self.errors += 1,
        }
    }
}

impl fmt::Display for LoadOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requests, errors, not_sent) = (self.requests(), self.errors, self.not_sent);
        writeln!(f, "{requests} requests, {errors} errors, {not_sent} not sent")?;
        for (status, latencies) in &self.latencies {
            write!(f, "  {status}: {}", latencies.len())?;
            for (name, thousandths) in [("p50", 500), ("p99", 990), ("p99.9", 999), ("max", 1000)] {
                write!(f, ", {name} {:.1?}", self.latency(*status, thousandths).unwrap_or_default())?;
            }
            writeln!(f)?;
        }
        self.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))
    }
}

fn client(local_address: Option<Ipv4Addr>) -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_local_address(local_address.map(IpAddr::V4));
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .retry_canceled_requests(false)
        .build(connector)
}

/// Sends a request and reads the whole response; its status.
async fn complete(client: &HttpClient, request: Request<String>) -> Result<u16, String> {
    let response = client.request(request).await.map_err(|error| with_causes(&error))?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame.map_err(|error| with_causes(&error))?;
    }
    Ok(status)
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
