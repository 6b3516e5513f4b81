//! Addresses and timeouts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisResult, TlsCertificates};

use crate::supervisor::Target;

/// The address of one Redis server with its credentials: `redis://[user:password@]host:port[/database]`, or
/// `rediss://` for TLS.
///
/// `Debug` and parse errors do not show the credentials.
#[derive(Clone)]
pub struct RedisUrl(Box<ConnectionInfo>);

impl FromStr for RedisUrl {
    type Err = InvalidRedisUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.into_connection_info().map(|info| Self(Box::new(info))).map_err(|_| InvalidRedisUrl)
    }
}

impl RedisUrl {
    pub(crate) fn with_tcp_settings(&self) -> ConnectionInfo {
        ConnectionInfo::clone(&self.0).set_tcp_settings(tcp_settings())
    }

    /// Another node of the same cluster, with the same credentials; `None` for a Unix socket.
    pub(crate) fn with_address(&self, host: &str, port: u16) -> Option<Self> {
        let address = match self.0.addr() {
            ConnectionAddr::Tcp(..) => ConnectionAddr::Tcp(host.to_owned(), port),
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: host.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => return None,
        };
        Some(Self(Box::new(ConnectionInfo::clone(&self.0).set_addr(address))))
    }

    /// The host; empty for a Unix socket.
    pub(crate) fn host(&self) -> &str {
        match self.0.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
            _ => "",
        }
    }

    /// Host and port, or the path of a Unix socket.
    pub(crate) fn address(&self) -> String {
        self.0.addr().to_string()
    }

    /// User, password, and whether TLS is used.
    pub(crate) fn credentials(&self) -> (Option<&str>, Option<&str>, bool) {
        let settings = self.0.redis_settings();
        (settings.username(), settings.password(), uses_tls(self))
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisUrl({})", self.0.addr())
    }
}

/// The text is not the address of a Redis server. The error does not repeat it, since it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected redis://[user:password@]host:port[/database], or rediss:// for TLS")]
pub struct InvalidRedisUrl;

/// The server or cluster to connect to.
#[derive(Debug, Clone, Default)]
pub enum RedisEndpoint {
    /// No Redis: every command fails with [`CommandError::Unavailable`](crate::CommandError::Unavailable).
    #[default]
    None,
    /// One server: `REDIS_URL`.
    Single(RedisUrl),
    /// A Redis Cluster, of which these are some of the nodes, at least one: `REDIS_CLUSTER_URLS`. All nodes
    /// have the same credentials.
    Cluster(Vec<RedisUrl>),
}

impl RedisEndpoint {
    /// The number of nodes that are named.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.urls().len()
    }

    /// The nodes that are named.
    pub(crate) const fn urls(&self) -> &[RedisUrl] {
        match self {
            Self::None => &[],
            Self::Single(url) => std::slice::from_ref(url),
            Self::Cluster(urls) => urls.as_slice(),
        }
    }
}

/// The configuration of a [`RedisConnection`](crate::RedisConnection).
#[derive(Clone)]
pub struct RedisConfig {
    /// The server or cluster to connect to.
    pub endpoint: RedisEndpoint,
    /// How long a request may wait for a reply: 50 ms.
    pub request_timeout: Duration,
    /// How long an attempt to connect may take: 1 s. Only background tasks wait for it.
    pub connect_timeout: Duration,
    /// A certificate authority in PEM, for servers whose certificate none of the system's authorities signed.
    pub root_certificate: Option<Vec<u8>>,
}

impl RedisConfig {
    /// The configuration for an endpoint, with the default timeouts.
    #[must_use]
    pub const fn new(endpoint: RedisEndpoint) -> Self {
        Self {
            endpoint,
            request_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            root_certificate: None,
        }
    }

    /// What connects to a server.
    pub(crate) fn target(&self, server: &RedisUrl) -> RedisResult<Target> {
        let address = server.with_tcp_settings();
        let client = if uses_tls(server) {
            Client::build_with_tls(address, self.certificates())
        } else {
            Client::open(address)
        };
        let mut probe = Cmd::new();
        match self.endpoint {
            RedisEndpoint::Cluster(_) => probe.arg("CLUSTER").arg("INFO"),
            RedisEndpoint::None | RedisEndpoint::Single(_) => probe.arg("PING"),
        };
        Ok(Target { client: client?, probe, connect_timeout: self.connect_timeout })
    }

    fn certificates(&self) -> TlsCertificates {
        TlsCertificates { client_tls: None, root_cert: self.root_certificate.clone() }
    }

    /// Installs the cryptography provider that rustls needs for TLS, unless the process has one.
    pub(crate) fn install_tls_provider(&self) {
        if self.needs_tls() && rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails if another thread has just installed one, which will do.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    }

    fn needs_tls(&self) -> bool {
        self.endpoint.urls().iter().any(uses_tls)
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisConfig")
            .field("endpoint", &self.endpoint)
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// How long what was sent, and a probe of an idle connection, may stay unacknowledged by the kernel of the
/// server.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

fn uses_tls(url: &RedisUrl) -> bool {
    matches!(url.0.addr(), ConnectionAddr::TcpTls { .. })
}

/// With Nagle's algorithm, a small command would wait for the acknowledgement of the one before it. The others
/// end a connection whose server has vanished, whether something was sent to it or not.
fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(PEER_TIMEOUT).with_interval(PEER_TIMEOUT);
    TcpSettings::default().set_nodelay(true).set_keepalive(keepalive).set_user_timeout(PEER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_no_credentials() {
        let url: RedisUrl = "rediss://someone:hunter2@redis.example:6380/3".parse().unwrap();
        let config = RedisConfig::new(RedisEndpoint::Single(url));
        let shown = format!("{config:?}");
        assert!(shown.contains("redis.example:6380"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("someone"), "{shown}");
    }

    #[test]
    fn error_does_not_repeat_an_invalid_url() {
        let error = "redis//:hunter2@host".parse::<RedisUrl>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
