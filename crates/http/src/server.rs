//! The HTTP server, with limits that `axum::serve` does not have: connections, the time to receive the head of
//! a request and the time to write; and with a shutdown that loses no request.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::TcpStream as StdStream;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use chart_index_instrumentation::Metrics;
use chart_index_ratelimit::TrustedProxies;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::acceptor::{Accepted, Acceptor, ConnectionPermits};
use crate::connection_metrics::CloseReason;
use crate::rate_limit::PeerAddress;
use crate::{ServerConfig, Worker};

/// The maximum size of request line and headers (docs/api.md, "Errors"). hyper responds to larger ones with 431
/// or 414 and closes the connection.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The read and write buffer of a connection. hyper's default allows a client that pipelines requests 400 KiB.
/// Larger than [`MAX_HEAD_BYTES`], so that the latter is what limits a head.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// A client connects to send a request. A younger connection is not closed as idle, since its request may be on
/// the way.
const MIN_CONNECTION_AGE: Duration = Duration::from_millis(500);

/// An HTTP/1.1 server. A reverse proxy provides TLS and HTTP/2.
#[derive(Debug)]
pub struct Server {
    /// Where clients connect.
    pub listener: TcpListener,
    /// Handle the connections: the one with the fewest gets the next. There must be at least one.
    pub workers: Vec<Worker>,
    /// The limits on connections.
    pub config: ServerConfig,
    /// The peers whose number of connections is not limited.
    pub trusted_proxies: TrustedProxies,
    /// Where connections are counted.
    pub metrics: &'static Metrics,
}

impl Server {
    /// Serves until `shutdown` completes, then shuts down in three steps.
    ///
    /// 1. Drain: for `drain_delay` connections are accepted and requests are served as before, while load
    ///    balancers notice that this process is not ready. Every response has `Connection: close`, and its
    ///    connection is closed after it (RFC 9112, section 9.6). Idle connections stay open, since a client may
    ///    be sending a request on one.
    /// 2. Close: idle connections are closed. Connections in the backlog of the listener are accepted and
    ///    served, then the listener is closed.
    /// 3. Finish: requests in flight have until the end of the grace period, which begins with step 2.
    ///    Connections that are still open after it are closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, workers, config, trusted_proxies, metrics } = self;
        let acceptor = Acceptor::new(listener, &config, &trusted_proxies, metrics);
        let mut connections = Connections::new(workers, &config);
        connections.accept_until(&acceptor, shutdown).await;
        connections.shutdown.is_draining.store(true, Ordering::Relaxed);
        connections.accept_until(&acceptor, sleep(config.drain_delay)).await;
        if timeout(config.shutdown_grace, connections.finish(acceptor)).await.is_err() {
            tracing::warn!(
                connections = connections.tasks.len(),
                "closed connections with requests in flight at the end of the grace period"
            );
        }
        connections.tasks.shutdown().await;
    }
}

/// The connections of a listener, each in a task.
struct Connections {
    /// Each with a reference for every open connection.
    workers: Vec<(Worker, Arc<()>)>,
    config: ServerConfig,
    tasks: JoinSet<()>,
    shutdown: Shutdown,
}

#[derive(Debug, Clone, Default)]
struct Shutdown {
    is_draining: Arc<AtomicBool>,
    /// Cancelled when idle connections must be closed.
    closing: CancellationToken,
}

impl Connections {
    fn new(workers: Vec<Worker>, config: &ServerConfig) -> Self {
        Self {
            workers: workers.into_iter().map(|worker| (worker, Arc::default())).collect(),
            config: *config,
            tasks: JoinSet::new(),
            shutdown: Shutdown::default(),
        }
    }

    async fn accept_until(&mut self, acceptor: &Acceptor, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut end => return,
                accepted = acceptor.accept() => accepted,
            };
            self.spawn(accepted);
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Closes idle connections, serves those in the backlog, closes the listener, and waits for requests in
    /// flight.
    async fn finish(&mut self, acceptor: Acceptor) {
        self.shutdown.closing.cancel();
        if let Ok(backlog) = acceptor.into_backlog() {
            while let Some(accepted) = backlog.accept().await {
                self.spawn(accepted);
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn spawn(&mut self, accepted: Accepted) {
        let Some((Worker { runtime, router }, open)) = with_fewest_connections(&self.workers) else {
            return;
        };
        let Accepted { stream, peer, permits } = accepted;
        // The runtime of the worker must be notified when the socket is ready, not this one.
        let Ok(stream) = stream.into_std() else { return };
        let connection = Connection {
            router: router.clone(),
            peer,
            _open: Arc::clone(open),
            permits,
            config: self.config,
            shutdown: self.shutdown.clone(),
        };
        self.tasks.spawn_on(connection.serve(stream), runtime);
    }
}

/// The worker with the fewest connections. With each worker in turn, the few busy connections that a proxy
/// keeps could have the same one.
fn with_fewest_connections(workers: &[(Worker, Arc<()>)]) -> Option<&(Worker, Arc<()>)> {
    workers.iter().min_by_key(|(_, open)| Arc::strong_count(open))
}

fn protocol(config: &ServerConfig) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_BUFFER_BYTES)
        // A client that shuts down its side after the request still reads the response. A client that is gone
        // looks the same; the request deadline and the write timeout end its connection.
        .half_close(true);
    protocol
}

struct Connection {
    router: Router,
    peer: PeerAddress,
    _open: Arc<()>,
    permits: ConnectionPermits,
    config: ServerConfig,
    shutdown: Shutdown,
}

impl Connection {
    async fn serve(self, stream: StdStream) {
        let Self { router, peer, _open, permits, config, shutdown } = self;
        let closing = async {
            let accepted_at = Instant::now();
            shutdown.closing.cancelled().await;
            sleep_until(accepted_at + MIN_CONNECTION_AGE).await;
        };
        // Responses are written as a whole, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "failed to set TCP_NODELAY");
        }
        let Ok(stream) = TcpStream::from_std(stream) else { return };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(config.write_timeout));
        let stream = TokioIo::new(Box::pin(stream));
        let handle = service_fn(async |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let mut response = router.clone().call(request).await?;
            if shutdown.is_draining.load(Ordering::Relaxed) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        });
        let protocol = protocol(&config);
        let mut served = pin!(protocol.serve_connection(stream, handle));
        let result = tokio::select! {
            // First, so that a request that has been received is not closed with its idle connection.
            biased;
            result = &mut served => result,
            () = closing => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = &result {
            // The client disconnected, was too slow, or did not send HTTP.
            tracing::debug!(%error, "connection failed");
        }
        permits.open.close(close_reason(&result, shutdown.is_draining.load(Ordering::Relaxed)));
    }
}

fn close_reason(result: &hyper::Result<()>, is_draining: bool) -> CloseReason {
    match result {
        Ok(()) if is_draining => CloseReason::Shutdown,
        Ok(()) => CloseReason::Completed,
        Err(error) if error.is_timeout() || is_write_timeout(error) => CloseReason::Timeout,
        Err(_) => CloseReason::ClientError,
    }
}

fn is_write_timeout(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests;
