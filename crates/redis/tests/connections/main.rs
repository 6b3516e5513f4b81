//! Connections to real Redis servers.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

/// Which connections the pool uses again.
mod pool;
/// Which connection a command uses.
mod runtimes;
/// Passwords and TLS.
mod security;
/// Timeouts of commands and the circuit breaker.
mod timeouts;
