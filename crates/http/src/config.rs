//! The settings of this crate: each is a flag and an environment variable.

use std::num::NonZeroU32;
use std::time::Duration;

use chart_index_cli::{parse_delay_milliseconds, parse_milliseconds};
use chart_index_ratelimit::Group;
use clap::Args;
use tokio::sync::Semaphore;

/// Limits on the requests of the public API.
#[derive(Debug, Clone, Copy, Args)]
pub struct RequestLimitConfig {
    /// Maximum duration of a request, in milliseconds; the response to a slower one is 503.
    #[arg(
        long = "request-deadline-ms",
        env = "REQUEST_DEADLINE_MS",
        value_name = "REQUEST_DEADLINE_MS",
        default_value = "5000",
        value_parser = parse_milliseconds
    )]
    pub request_deadline: Duration,

    /// Maximum requests in flight; the response to further ones is 503. Each group of endpoints has a share.
    #[arg(long, env = "MAX_REQUESTS_IN_FLIGHT", default_value = "1024")]
    pub max_requests_in_flight: NonZeroU32,
}

impl RequestLimitConfig {
    pub(crate) fn max_in_flight(&self) -> usize {
        let max_in_flight = usize::try_from(self.max_requests_in_flight.get()).unwrap_or(usize::MAX);
        max_in_flight.min(Semaphore::MAX_PERMITS)
    }

    /// Maximum requests in flight of a group. All others together leave a quarter to lookups, and lookups leave
    /// a quarter to them.
    #[must_use]
    pub fn max_in_flight_of(&self, group: Group) -> usize {
        let parts = match group {
            Group::Lookup => 24,
            Group::List => 8,
            Group::Page => 6,
            Group::Rox => 4,
            Group::Bulk => 2,
            Group::Detail | Group::Preview | Group::Feed | Group::Other => 1,
        };
        (self.max_in_flight() * parts / 32).max(1)
    }
}

/// Limits on the connections of a listener.
#[derive(Debug, Clone, Copy, Args)]
pub struct ServerConfig {
    /// Maximum connections of the public listener; further ones wait to be accepted.
    #[arg(long, env = "MAX_CONNECTIONS", default_value = "8192")]
    pub max_connections: NonZeroU32,

    /// Maximum connections per peer address (IPv6: per /64); further ones are closed. Does not apply to
    /// `TRUSTED_PROXIES`.
    #[arg(long, env = "MAX_CONNECTIONS_PER_PEER", default_value = "256")]
    pub max_connections_per_peer: NonZeroU32,

    /// Maximum time to receive the head of a request, in milliseconds. Also the keep-alive timeout of idle
    /// connections.
    #[arg(
        long = "header-read-timeout-ms",
        env = "HEADER_READ_TIMEOUT_MS",
        value_name = "HEADER_READ_TIMEOUT_MS",
        default_value = "10000",
        value_parser = parse_milliseconds
    )]
    pub header_read_timeout: Duration,

    /// Maximum time without progress while a response is sent, in milliseconds; then the connection is closed.
    #[arg(
        long = "write-timeout-ms",
        env = "WRITE_TIMEOUT_MS",
        value_name = "WRITE_TIMEOUT_MS",
        default_value = "10000",
        value_parser = parse_milliseconds
    )]
    pub write_timeout: Duration,

    /// Time between a shutdown signal and the close of the listener, in milliseconds: the server is not ready,
    /// serves requests, and closes each connection after its response. Must be longer than load balancers take
    /// to notice.
    #[arg(
        long = "drain-delay-ms",
        env = "DRAIN_DELAY_MS",
        value_name = "DRAIN_DELAY_MS",
        default_value = "5000",
        value_parser = parse_delay_milliseconds
    )]
    pub drain_delay: Duration,

    /// Maximum time after the drain delay to finish requests in flight and to exit, in milliseconds; then their
    /// connections are closed.
    #[arg(
        long = "shutdown-grace-ms",
        env = "SHUTDOWN_GRACE_MS",
        value_name = "SHUTDOWN_GRACE_MS",
        default_value = "10000",
        value_parser = parse_milliseconds
    )]
    pub shutdown_grace: Duration,
}
