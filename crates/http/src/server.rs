//! The server: an accept loop of its own, since `axum::serve` bounds neither the time that a client takes over
//! a request's head nor the number of connections.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
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
use crate::rate_limit::Peer;

/// The longest request line and headers. Above it hyper itself answers 431, or 414, and closes.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// How long to wait when the system has no socket to give: something has to be closed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves HTTP/1.1 on the listener until `shutdown` completes.
///
/// Then nothing more is accepted, idle connections are closed, and requests in flight are finished, for as long
/// as the grace period lasts; whatever is left after it is cut. TLS and HTTP/2 are for the proxy in front.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: &ServerConfig,
    shutdown: impl Future<Output = ()>,
) {
    let places = usize::try_from(config.max_connections.get()).unwrap_or(usize::MAX);
    let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
    let protocol = protocol(config);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(config.write_timeout));
        let with_peer = router.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        });
        connections.spawn(connection(stream, place, protocol.clone(), with_peer, graceful.watcher()));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
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
        .max_header_size(MAX_HEAD_BYTES);
    protocol
}

/// Waits for a place, then for a connection: those above the bound stay in the backlog of the listener.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Peer, Option<OwnedSemaphorePermit>) {
    // Nobody closes the semaphore, so there is always a permit to come.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, Peer(peer.ip()), place),
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                sleep(ACCEPT_PAUSE).await;
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
    _place: Option<OwnedSemaphorePermit>,
    protocol: http1::Builder,
    with_peer: MapRequest<
        Router,
        impl FnMut(Request<Incoming>) -> Request<Incoming> + Clone + Send + 'static,
    >,
    watcher: Watcher,
) {
    // Answers are written whole: to wait for more to send only delays them.
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
