//! The server: an accept loop of its own, since `axum::serve` bounds neither the time that a client takes over
//! a request's head nor the number of connections.

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
use crate::log_limit::LogLimit;
use crate::peers::{PeerConnections, PeerPermit};
use crate::rate_limit::Peer;

/// The longest request line and headers (docs/api.md, "Errors"). Above it hyper itself answers 431, or 414, and closes.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most that is read ahead of a connection, or gathered for one write. By default hyper takes up to 400 KiB for a
/// client that sends many requests at once. Above [`MAX_HEAD_BYTES`], so that the length of a head is decided there.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// How long to wait when the system has no socket to give: something has to be closed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves HTTP/1.1 on the listener until `shutdown` completes.
///
/// Then nothing more is accepted, idle connections are closed, and requests in flight are finished, for as long
/// as the grace period lasts; whatever is left after it is cut. TLS and HTTP/2 are for the proxy in front.
///
/// The connections of one peer are bounded, unless it is one of the trusted proxies.
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
        tracing::warn!(connections = connections.len(), "requests cut at the end of the grace period");
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
        // A client that has sent its request and shuts down its side still reads. One that is gone looks the same: the
        // deadline of its request and the write timeout end it.
        .half_close(true);
    protocol
}

/// A listener and the bounds of what it accepts.
struct Acceptor {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    peers: PeerConnections,
}

/// What a connection holds until it ends.
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

    /// Waits for a permit, then for a connection: those above the bound stay in the backlog of the listener. A
    /// connection above the bound of its peer is reset, which leaves nothing of it behind.
    async fn accept(&self) -> (TcpStream, Peer, Permits) {
        static NOT_ACCEPTED: LogLimit = LogLimit::new();
        static PEER_FULL: LogLimit = LogLimit::new();
        // Nobody closes the semaphore, so there is always a permit to come.
        let permit = Arc::clone(&self.connections).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let peer = Peer(address.ip());
                    if let Some(of_peer) = self.peers.acquire(peer.0) {
                        return (stream, peer, Permits { _connection: permit, _peer: of_peer });
                    }
                    let _ = stream.set_zero_linger();
                    if let Some(suppressed) = PEER_FULL.permit() {
                        tracing::warn!(suppressed, "connection above MAX_CONNECTIONS_PER_PEER closed");
                    }
                }
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) => {
                    if let Some(suppressed) = NOT_ACCEPTED.permit() {
                        tracing::warn!(%error, suppressed, "connection not accepted");
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Whether only the connection that was about to be accepted is gone. Anything else is short of something, file
/// descriptors most of all, and would come again at once.
fn is_of_the_connection(error: &io::Error) -> bool {
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
    // ResponseCache are written whole: to wait for more to send only delays them.
    if let Err(error) = stream.get_ref().set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY not set");
    }
    let served =
        protocol.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(with_peer));
    if let Err(error) = watcher.watch(served).await {
        // A client that went away, was too slow, or does not speak HTTP.
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests;
