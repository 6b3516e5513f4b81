//! Accepts connections, within the limits of the listener and of each peer.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use chart_index_instrumentation::Metrics;
use chart_index_ratelimit::TrustedProxies;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::ServerConfig;
use crate::connection_metrics::{CloseReason, ConnectionMetrics, OpenConnection};
use crate::log_throttle::LogThrottle;
use crate::peer_connections::{PeerConnections, PeerPermit};
use crate::rate_limit::PeerAddress;

/// The pause after an error of `accept` that would occur again at once, such as a lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A listener with its connection limits.
pub(crate) struct Acceptor {
    listener: TcpListener,
    limits: ConnectionLimits,
}

/// The rest of the backlog of a listener that will be closed: connections that clients regard as established,
/// and on which they may have sent requests. Closing the listener resets them, so they are accepted first.
/// Dropping the value closes the listener.
pub(crate) struct Backlog {
    listener: StdListener,
    limits: ConnectionLimits,
}

pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: PeerAddress,
    pub(crate) permits: ConnectionPermits,
}

/// The permits that a connection holds until it ends.
pub(crate) struct ConnectionPermits {
    pub(crate) open: OpenConnection,
    _connection: Option<OwnedSemaphorePermit>,
    _peer: PeerPermit,
}

struct ConnectionLimits {
    connections: Arc<Semaphore>,
    peers: PeerConnections,
    metrics: Arc<ConnectionMetrics>,
}

impl Acceptor {
    pub(crate) fn new(
        listener: TcpListener,
        config: &ServerConfig,
        trusted_proxies: &TrustedProxies,
        metrics: &Metrics,
    ) -> Self {
        let connections = usize::try_from(config.max_connections.get()).unwrap_or(usize::MAX);
        let limits = ConnectionLimits {
            connections: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            peers: PeerConnections::new(config.max_connections_per_peer, trusted_proxies.clone()),
            metrics: ConnectionMetrics::new(metrics, config.max_connections.get()),
        };
        Self { listener, limits }
    }

    /// Waits for a permit, then for a connection: connections above the limit stay in the backlog of the
    /// socket. A connection above the limit of its peer is reset, which leaves no socket in `TIME_WAIT`.
    pub(crate) async fn accept(&self) -> Accepted {
        static ACCEPT_FAILED: LogThrottle = LogThrottle::new(Duration::from_secs(1));
        let mut permit = self.limits.acquire_connection_permit().await;
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => match self.limits.admit(stream, address, permit) {
                    Ok(accepted) => return accepted,
                    Err(unused) => permit = unused,
                },
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

    /// The rest of the backlog.
    ///
    /// # Errors
    ///
    /// The listener cannot be removed from the runtime.
    pub(crate) fn into_backlog(self) -> io::Result<Backlog> {
        Ok(Backlog { listener: self.listener.into_std()?, limits: self.limits })
    }
}

impl Backlog {
    /// Accepts the next connection, once there is a permit; `None` if there are no more. The runtime learns of
    /// connections with a delay, so this asks the system.
    pub(crate) async fn accept(&self) -> Option<Accepted> {
        let mut permit = self.limits.acquire_connection_permit().await;
        loop {
            match self.listener.accept().and_then(|(stream, address)| {
                stream.set_nonblocking(true)?;
                Ok((TcpStream::from_std(stream)?, address))
            }) {
                Ok((stream, address)) => match self.limits.admit(stream, address, permit) {
                    Ok(accepted) => return Some(accepted),
                    Err(unused) => permit = unused,
                },
                Err(error) if is_connection_error(&error) => {}
                // The backlog is empty, or files are lacking.
                Err(_) => return None,
            }
        }
    }
}

impl ConnectionLimits {
    /// Waits for the permit of a connection. `None` means that the semaphore is closed, which never happens.
    async fn acquire_connection_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).acquire_owned().await.ok()
    }

    /// Resets a connection above the limit of its peer and returns the permit.
    fn admit(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Accepted, Option<OwnedSemaphorePermit>> {
        static PEER_AT_LIMIT: LogThrottle = LogThrottle::new(Duration::from_secs(1));
        let peer = PeerAddress(address.ip());
        if let Some(peer_permit) = self.peers.acquire(peer.0) {
            let permits =
                ConnectionPermits { open: self.metrics.open(), _connection: permit, _peer: peer_permit };
            return Ok(Accepted { stream, peer, permits });
        }
        self.metrics.count_closed(CloseReason::PeerLimit);
        let _ = stream.set_zero_linger();
        if let Some(suppressed) = PEER_AT_LIMIT.try_log() {
            tracing::warn!(suppressed, "connection closed: its peer has MAX_CONNECTIONS_PER_PEER");
        }
        Err(permit)
    }
}

/// Whether an error of `accept` concerns the accepted connection only. Other errors, such as a lack of file
/// descriptors, would return at once.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `EMFILE`.
    const TOO_MANY_OPEN_FILES: i32 = 24;

    #[test]
    fn only_connection_errors_are_retried_without_a_delay() {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, OutOfMemory, PermissionDenied};
        for (kind, expected) in [
            (ConnectionAborted, true),
            (ConnectionReset, true),
            (OutOfMemory, false),
            (PermissionDenied, false),
        ] {
            assert_eq!(is_connection_error(&kind.into()), expected, "{kind}");
        }
        assert!(!is_connection_error(&io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES)));
    }
}
