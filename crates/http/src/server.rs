//! The HTTP server. `axum::serve` limits neither the time to receive the head of a request nor the number of connections,
//! so this has its own accept loop.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use chart_index_ratelimit::TrustedProxies;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;
use tower::util::MapRequest;

use crate::ServerConfig;
use crate::log_throttle::LogThrottle;
use crate::peer_connections::{PeerConnections, PeerPermit};
use crate::rate_limit::PeerAddress;

/// The maximum size of request line and headers (docs/api.md, "Errors"). hyper responds to larger ones with 431 or 414
/// and closes the connection.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The read and write buffer of a connection. hyper's default allows a client that pipelines requests 400 KiB. Larger than
/// [`MAX_HEAD_BYTES`], so that the latter is what limits a head.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// The pause after an error of `accept`, such as a lack of file descriptors, which would return at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves HTTP/1.1 on the listener until `shutdown` completes.
///
/// It then stops accepting, closes idle connections and finishes requests in flight. Connections that are still open
/// after the grace period are closed. A reverse proxy provides TLS and HTTP/2.
///
/// The number of connections per peer is limited, except for trusted proxies.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: &ServerConfig,
    trusted_proxies: &TrustedProxies,
    shutdown: impl Future<Output = ()>,
) {
    let acceptor = Acceptor::new(listener, config, trusted_proxies);
    let protocol = protocol(config);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, permits) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = acceptor.accept() => accepted,
        };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(config.write_timeout));
        let with_peer = router.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        });
        connections.spawn(connection(stream, permits, protocol.clone(), with_peer, graceful.watcher()));
        while connections.try_join_next().is_some() {}
    }
    drop(acceptor);
    if timeout(config.shutdown_grace, graceful.shutdown()).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "closed connections with requests in flight at the end of the grace period"
        );
    }
    connections.shutdown().await;
}

fn protocol(config: &ServerConfig) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_BUFFER_BYTES)
        // A client that shuts down its side after the request still reads the response. A client that is gone looks the
        // same; the request deadline and the write timeout end its connection.
        .half_close(true);
    protocol
}

/// A listener with its connection limits.
struct Acceptor {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    peers: PeerConnections,
}

/// The permits that a connection holds until it ends.
struct Permits {
    _connection: Option<OwnedSemaphorePermit>,
    _peer: PeerPermit,
}

impl Acceptor {
    fn new(listener: TcpListener, config: &ServerConfig, trusted_proxies: &TrustedProxies) -> Self {
        let connections = usize::try_from(config.max_connections.get()).unwrap_or(usize::MAX);
        Self {
            listener,
            connections: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            peers: PeerConnections::new(config.max_connections_per_peer, trusted_proxies.clone()),
        }
    }

    /// Waits for a permit, then for a connection: connections above the limit stay in the backlog of the socket. A
    /// connection above the limit of its peer is reset, which leaves no socket in `TIME_WAIT`.
    async fn accept(&self) -> (TcpStream, PeerAddress, Permits) {
        static ACCEPT_FAILED: LogThrottle = LogThrottle::new();
        static PEER_AT_LIMIT: LogThrottle = LogThrottle::new();
        // An error means that the semaphore is closed, which never happens.
        let permit = Arc::clone(&self.connections).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let peer = PeerAddress(address.ip());
                    if let Some(peer_permit) = self.peers.acquire(peer.0) {
                        return (stream, peer, Permits { _connection: permit, _peer: peer_permit });
                    }
                    let _ = stream.set_zero_linger();
                    if let Some(suppressed) = PEER_AT_LIMIT.try_log() {
                        tracing::warn!(
                            suppressed,
                            "connection closed: its peer has MAX_CONNECTIONS_PER_PEER"
                        );
                    }
                }
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    if let Some(suppressed) = ACCEPT_FAILED.try_log() {
                        tracing::warn!(%error, suppressed, "failed to accept a connection");
                    }
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
}

/// Whether an error of `accept` concerns the accepted connection only. Other errors, such as a lack of file descriptors,
/// would return at once.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    stream: TimeoutStream<TcpStream>,
    _permits: Permits,
    protocol: http1::Builder,
    with_peer: MapRequest<
        Router,
        impl FnMut(Request<Incoming>) -> Request<Incoming> + Clone + Send + 'static,
    >,
    watcher: Watcher,
) {
    // Responses are written as a whole, so Nagle's algorithm would only delay them.
    if let Err(error) = stream.get_ref().set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let served =
        protocol.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(with_peer));
    if let Err(error) = watcher.watch(served).await {
        // The client disconnected, was too slow, or did not send HTTP.
        tracing::debug!(%error, "connection failed");
    }
}

#[cfg(test)]
mod tests;
