//! What sends the requests: wrk for ceilings, and an open loop for latencies.

mod open_loop;
mod wrk;

pub(crate) use open_loop::{Latencies, OpenLoop, OpenLoopOutcome};
pub(crate) use wrk::{RequestLine, Wrk};

/// What wrk reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Complete responses.
    pub(crate) requests: u64,
    /// How long the requests took.
    pub(crate) seconds: f64,
    /// Bytes of heads and bodies.
    pub(crate) bytes: u64,
    /// Requests without a complete response, or with a status of 400 and above.
    pub(crate) failures: u64,
}
