//! What sends the requests: wrk for ceilings over HTTP, pgbench for those of PostgreSQL, and an open loop for
//! latencies.

mod open_loop;
mod pgbench;
mod wrk;

use anyhow::Result;

pub(crate) use open_loop::{Latencies, OpenLoop, OpenLoopOutcome};
pub(crate) use pgbench::Pgbench;
pub(crate) use wrk::{RequestLine, Wrk};

/// A generator that sends as many requests as its target can take.
#[derive(Debug)]
pub(crate) enum ClosedLoop {
    Wrk(Wrk),
    Pgbench(Pgbench),
}

/// What a generator reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Complete responses.
    pub(crate) requests: u64,
    /// How long the requests took.
    pub(crate) seconds: f64,
    /// Bytes of heads and bodies, if they are counted.
    pub(crate) bytes: u64,
    /// Requests without a complete response, or with a status of 400 and above.
    pub(crate) failures: u64,
}

impl ClosedLoop {
    /// Sends requests for this time. Each number selects other client addresses, and continues in the table of
    /// requests.
    pub(crate) async fn run(&self, seconds: u64, number: usize) -> Result<Sent> {
        match self {
            Self::Wrk(wrk) => wrk.run(seconds, number).await,
            Self::Pgbench(pgbench) => pgbench.run(seconds).await,
        }
    }
}
