//! The settings of this crate: each a flag and an environment variable.

use std::num::{NonZeroU32, NonZeroU64, ParseIntError};
use std::time::Duration;

use clap::Args;

/// The bounds that every request of the public API is held to.
#[derive(Debug, Clone, Copy, Args)]
pub struct LayerConfig {
    /// How long a request may take, in milliseconds; then it is answered with 503.
    #[arg(
        long = "request-deadline-ms",
        env = "REQUEST_DEADLINE_MS",
        value_name = "REQUEST_DEADLINE_MS",
        default_value = "5000",
        value_parser = milliseconds
    )]
    pub request_deadline: Duration,

    /// How many requests may be in flight at once; those above it are answered with 503.
    #[arg(long, env = "MAX_REQUESTS_IN_FLIGHT", default_value = "1024")]
    pub max_requests_in_flight: NonZeroU32,
}

/// The bounds that every connection of a listener is held to.
#[derive(Debug, Clone, Copy, Args)]
pub struct ServerConfig {
    /// How many connections a listener holds at once; those above it wait to be accepted.
    #[arg(long, env = "MAX_CONNECTIONS", default_value = "8192")]
    pub max_connections: NonZeroU32,

    /// How many connections one peer (IPv6: one /64) may hold of a listener; one more is closed at once. A peer in
    /// `TRUSTED_PROXIES` is not bounded.
    #[arg(long, env = "MAX_CONNECTIONS_PER_PEER", default_value = "256")]
    pub max_connections_per_peer: NonZeroU32,

    /// How long a connection may wait for, or take over, the head of a request, in milliseconds; then it is
    /// closed. This is also how long an idle connection is kept.
    #[arg(
        long = "header-read-timeout-ms",
        env = "HEADER_READ_TIMEOUT_MS",
        value_name = "HEADER_READ_TIMEOUT_MS",
        default_value = "10000",
        value_parser = milliseconds
    )]
    pub header_read_timeout: Duration,

    /// How long a client may take none of its answer, in milliseconds; then its connection is closed.
    #[arg(
        long = "write-timeout-ms",
        env = "WRITE_TIMEOUT_MS",
        value_name = "WRITE_TIMEOUT_MS",
        default_value = "10000",
        value_parser = milliseconds
    )]
    pub write_timeout: Duration,

    /// How long requests in flight may take to finish at shutdown, in milliseconds; then they are cut.
    #[arg(
        long = "shutdown-grace-ms",
        env = "SHUTDOWN_GRACE_MS",
        value_name = "SHUTDOWN_GRACE_MS",
        default_value = "10000",
        value_parser = milliseconds
    )]
    pub shutdown_grace: Duration,
}

/// Reads a duration from a whole number of milliseconds, at least 1.
pub fn milliseconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse::<NonZeroU64>().map(|number| Duration::from_millis(number.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_of_milliseconds_above_zero() {
        assert_eq!(milliseconds("1500"), Ok(Duration::from_millis(1500)));
        for bad in ["0", "-1", "1.5", "1s", ""] {
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
    }
}
