//! Open loop: request number `n` starts `n / rate` seconds after the first one, however long responses take,
//! and its latency is measured from that moment.

mod pacer;
mod recorder;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_ENCODING, ETAG, HOST, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(crate) use recorder::{Latencies, OpenLoopOutcome};

use self::pacer::Pacer;
use self::recorder::{Completed, Recorder};
use crate::scenario::{Clients, Received, Request, Requests};

/// A response that takes longer is an error.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A load at a fixed rate.
#[derive(Debug, Clone)]
pub(crate) struct OpenLoop {
    /// The target.
    pub(crate) address: SocketAddr,
    /// What is sent.
    pub(crate) requests: Arc<Requests>,
    /// Who sends it.
    pub(crate) clients: Clients,
    /// Requests per second.
    pub(crate) rate: u32,
    /// Requests that should start in this time are sent and not recorded.
    pub(crate) warm_up: Duration,
    /// How long requests are recorded.
    pub(crate) duration: Duration,
    /// Maximum requests in flight, each on a connection of its own.
    pub(crate) connections: u32,
    /// Whether 503 is a correct response.
    pub(crate) may_reject: bool,
}

/// The state that all connections of a load share.
#[derive(Debug)]
struct Shared {
    load: OpenLoop,
    /// The number of requests.
    total: u64,
    /// One permit for each request that is due.
    due: Arc<Semaphore>,
    start: Instant,
    next: AtomicU64,
    recorder: Mutex<Recorder>,
}

type Connection = SendRequest<Empty<Bytes>>;

impl OpenLoop {
    /// Runs the load.
    pub(crate) async fn run(&self) -> Result<OpenLoopOutcome> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(connect(self.address).await?);
        }
        let due = Arc::new(Semaphore::new(0));
        let shared = Arc::new(Shared {
            load: self.clone(),
            total: u64::from(self.rate) * (self.warm_up + self.duration).as_secs(),
            start: Pacer::spawn(self.rate, Arc::clone(&due)),
            due,
            next: AtomicU64::new(0),
            recorder: Mutex::new(Recorder::new(self.warm_up, self.may_reject)?),
        });
        let mut loops: JoinSet<Result<()>> =
            connections.into_iter().map(|connection| Arc::clone(&shared).send_all(connection)).collect();
        while let Some(ended) = loops.join_next().await {
            ended??;
        }
        let shared = Arc::try_unwrap(shared).ok().context("a connection of the load is still in use")?;
        Ok(shared.recorder.into_inner().unwrap_or_else(PoisonError::into_inner).finish(self.duration))
    }
}

impl Shared {
    /// Sends requests when they are due, until all have been sent.
    async fn send_all(self: Arc<Self>, connection: Connection) -> Result<()> {
        let mut connection = Some(connection);
        loop {
            let idle_since = self.start.elapsed();
            self.due.acquire().await?.forget();
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.total {
                return Ok(());
            }
            self.send_one(&mut connection, number, idle_since).await?;
        }
    }

    /// Sends a request and records its response.
    async fn send_one(
        &self,
        connection: &mut Option<Connection>,
        number: u64,
        idle_since: Duration,
    ) -> Result<()> {
        let Self { load, start, recorder, .. } = self;
        let intended = Duration::from_secs_f64(crate::cpu::ratio(number, u64::from(load.rate)));
        let sent = start.elapsed();
        let index = load.requests.index(number);
        let request = load.requests.distinct.get(index).context("no such request")?;
        let client = load.clients.number(number);
        let response = tokio::time::timeout(TIMEOUT, send(connection, load.address, request, client)).await;
        let response = response.unwrap_or_else(|_| Err(anyhow::anyhow!("timeout")));
        if response.is_err() {
            // The next request opens another connection.
            *connection = None;
        }
        let completed = Completed { index, client, intended, idle_since, sent, received: start.elapsed() };
        recorder.lock().unwrap_or_else(PoisonError::into_inner).record(request, &completed, &response);
        Ok(())
    }
}

async fn connect(address: SocketAddr) -> Result<Connection> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends when the sender is dropped or the server closes the connection.
    tokio::spawn(connection);
    Ok(sender)
}

async fn send(
    connection: &mut Option<Connection>,
    address: SocketAddr,
    request: &Request,
    client: u32,
) -> Result<Response<Bytes>> {
    if connection.as_ref().is_none_or(SendRequest::is_closed) {
        *connection = Some(connect(address).await?);
    }
    let sender = connection.as_mut().context("connected above")?;
    let mut message = hyper::Request::get(&request.path)
        .header(HOST, address.to_string())
        .header("x-forwarded-for", address_of(client).to_string());
    for (name, value) in &request.headers {
        message = message.header(name, value);
    }
    sender.ready().await?;
    let (head, body) = sender.send_request(message.body(Empty::new())?).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

/// The address of a client: 10.0.0.0 plus its number.
fn address_of(client: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + client)
}

/// The parts of a response that are verified, and its `Retry-After`.
fn received(response: &Response<Bytes>) -> (Received<'_>, &str) {
    let header = |name| text(response.headers(), name);
    let received = Received {
        status: response.status().as_u16(),
        tag: header(ETAG),
        location: header(LOCATION),
        body: response.body(),
        is_encoded: response.headers().contains_key(CONTENT_ENCODING),
    };
    (received, header(RETRY_AFTER))
}

fn text(headers: &HeaderMap, name: hyper::header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
