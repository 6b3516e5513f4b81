//! Where Redis is, and how long it may take.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::io::tcp::TcpSettings;
use redis::{
    Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisResult, TlsCertificates,
};

/// The address of one Redis server with its credentials: `redis://[user:password@]host:port[/database]`, or
/// `rediss://` for TLS.
///
/// Neither `Debug` nor the error of parsing shows any part of the credentials.
#[derive(Clone)]
pub struct RedisUrl(Box<ConnectionInfo>);

impl FromStr for RedisUrl {
    type Err = MalformedRedisUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.into_connection_info().map(|info| Self(Box::new(info))).map_err(|_| MalformedRedisUrl)
    }
}

impl RedisUrl {
    pub(super) fn connection_info(&self) -> &ConnectionInfo {
        &self.0
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisUrl({})", self.0.addr())
    }
}

/// The text is not the address of a Redis server. It is not repeated here: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "REDIS_URL and REDIS_CLUSTER_URLS take redis://[user:password@]host:port[/database], or rediss:// for TLS"
)]
pub struct MalformedRedisUrl;

/// What to connect to.
#[derive(Debug, Clone, Default)]
pub enum RedisEndpoint {
    /// No Redis: every question is answered with [`LinkError::Away`](super::LinkError::Away).
    #[default]
    None,
    /// One server: `REDIS_URL`.
    Single(RedisUrl),
    /// A Redis Cluster, known by some of its nodes: `REDIS_CLUSTER_URLS`. They share their credentials.
    Cluster(Vec<RedisUrl>),
}

/// The configuration of a [`RedisLink`](super::RedisLink).
#[derive(Clone)]
pub struct RedisLinkConfig {
    /// What to connect to.
    pub endpoint: RedisEndpoint,
    /// The most that one request waits for Redis: 50 ms.
    pub request_timeout: Duration,
    /// The most that one attempt to connect takes: 1 s. Only the background waits for it.
    pub connect_timeout: Duration,
    /// The certificate authority of the servers in PEM, where the system's store does not know it.
    pub root_certificate: Option<Vec<u8>>,
}

impl RedisLinkConfig {
    /// The configuration for an endpoint, with the default time-outs.
    #[must_use]
    pub const fn new(endpoint: RedisEndpoint) -> Self {
        Self {
            endpoint,
            request_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            root_certificate: None,
        }
    }

    /// What opens connections; `None` without an endpoint.
    pub(super) fn opener(&self) -> RedisResult<Option<Opener>> {
        Ok(match &self.endpoint {
            RedisEndpoint::None => None,
            RedisEndpoint::Single(url) => Some(Opener::Single(Box::new(self.client(url)?))),
            RedisEndpoint::Cluster(urls) => Some(Opener::Cluster(Box::new(self.cluster(urls)?))),
        })
    }

    /// What opens connections to each of the servers by itself, as a subscription needs it.
    ///
    /// # Errors
    ///
    /// Where an address cannot be used at all, e.g. for a certificate that does not parse.
    pub fn clients(&self) -> RedisResult<Vec<Client>> {
        self.prepare_tls();
        match &self.endpoint {
            RedisEndpoint::None => Ok(Vec::new()),
            RedisEndpoint::Single(url) => Ok(vec![self.client(url)?]),
            RedisEndpoint::Cluster(urls) => urls.iter().map(|url| self.client(url)).collect(),
        }
    }

    /// What opens connections to the node of the cluster at this address, with the credentials and the TLS of the
    /// endpoint.
    ///
    /// # Errors
    ///
    /// Without an endpoint; for a certificate that does not parse.
    pub fn client_at(&self, host: &str, port: u16) -> RedisResult<Client> {
        let url = match &self.endpoint {
            RedisEndpoint::Single(url) => Some(url),
            RedisEndpoint::Cluster(urls) => urls.first(),
            RedisEndpoint::None => None,
        };
        let url = url.ok_or((ErrorKind::InvalidClientConfig, "no redis is configured"))?;
        let host = host.to_owned();
        let address = match url.0.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        self.client(&RedisUrl(Box::new(ConnectionInfo::clone(&url.0).set_addr(address))))
    }

    pub(super) fn client(&self, url: &RedisUrl) -> RedisResult<Client> {
        let address = without_delay(url);
        if uses_tls(url) {
            Client::build_with_tls(address, self.certificates())
        } else {
            Client::open(address)
        }
    }

    fn cluster(&self, urls: &[RedisUrl]) -> RedisResult<ClusterClient> {
        let mut builder = ClusterClientBuilder::new(urls.iter().map(without_delay))
            .tcp_settings(no_delay())
            .connection_timeout(self.connect_timeout)
            .response_timeout(self.connect_timeout)
            // Every request has its own deadline, and what nobody waits for any more is not retried.
            .overall_response_timeout(None)
            .retries(3);
        if urls.iter().any(uses_tls) {
            builder = builder.certs(self.certificates());
        }
        builder.build()
    }

    fn certificates(&self) -> TlsCertificates {
        TlsCertificates { client_tls: None, root_cert: self.root_certificate.clone() }
    }

    /// TLS needs a cryptography provider of the process.
    pub(super) fn prepare_tls(&self) {
        if self.needs_tls() && rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may have been faster, which is just as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    }

    fn needs_tls(&self) -> bool {
        match &self.endpoint {
            RedisEndpoint::None => false,
            RedisEndpoint::Single(url) => uses_tls(url),
            RedisEndpoint::Cluster(urls) => urls.iter().any(uses_tls),
        }
    }
}

impl fmt::Debug for RedisLinkConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisLinkConfig")
            .field("endpoint", &self.endpoint)
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// What opens connections.
pub(super) enum Opener {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

fn uses_tls(url: &RedisUrl) -> bool {
    matches!(url.0.addr(), ConnectionAddr::TcpTls { .. })
}

/// Off in this client by default. With Nagle's algorithm a small command waits for the acknowledgement of the one
/// before it.
fn no_delay() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn without_delay(url: &RedisUrl) -> ConnectionInfo {
    ConnectionInfo::clone(&url.0).set_tcp_settings(no_delay())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown() {
        let url: RedisUrl = "rediss://someone:hunter2@redis.example:6380/3".parse().unwrap();
        let config = RedisLinkConfig::new(RedisEndpoint::Single(url));
        let shown = format!("{config:?}");
        assert!(shown.contains("redis.example:6380"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("someone"), "{shown}");
    }

    #[test]
    fn a_malformed_url_is_not_repeated() {
        let error = "redis//:hunter2@host".parse::<RedisUrl>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
