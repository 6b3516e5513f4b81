//! What became of the requests of an open loop.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use hdrhistogram::Histogram;
use hyper::Response;
use serde::Serialize;

use super::received;
use crate::scenario::Request;
use crate::verify::{Examples, Verifier};

/// A start that is later than this counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Latencies are recorded in microseconds with this many significant digits.
const DIGITS: u8 = 3;
/// The longest latency that is recorded as it is.
const MAX_MICROSECONDS: u64 = 3_600_000_000;

/// One request. Times are counted from the start of the load.
#[derive(Debug)]
pub(super) struct Completed {
    /// Its number among the distinct requests.
    pub(super) index: usize,
    pub(super) client: u32,
    pub(super) intended: Duration,
    /// When its connection was idle.
    pub(super) idle_since: Duration,
    pub(super) sent: Duration,
    pub(super) received: Duration,
}

/// Counts requests while the load runs.
#[derive(Debug)]
pub(super) struct Recorder {
    warm_up: Duration,
    verifier: Verifier,
    /// Latencies of responses that were neither refused nor rejected.
    accepted: Histogram<u64>,
    statuses: BTreeMap<u16, u64>,
    recorded: u64,
    late: u64,
    queued: u64,
    errors: Examples,
}

/// What became of the requests.
#[derive(Debug)]
pub(crate) struct OpenLoopOutcome {
    /// Latencies in microseconds of responses that were neither refused nor rejected.
    pub(crate) accepted: Latencies,
    /// Responses by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Recorded requests per second.
    pub(crate) requests_per_second: f64,
    /// Recorded requests.
    pub(crate) requests: u64,
    /// Requests that the generator started more than 1 ms late.
    pub(crate) late: u64,
    /// Requests that started late because all connections were waiting for responses.
    pub(crate) queued: u64,
    /// Requests without a response.
    pub(crate) errors: Examples,
    /// Wrong responses.
    pub(crate) wrong: Examples,
    /// Violations of the limit of a client.
    pub(crate) violations: Examples,
}

/// Latencies in microseconds from the intended start.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Latencies {
    pub(crate) count: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Recorder {
    pub(super) fn new(warm_up: Duration, may_reject: bool) -> Result<Self> {
        Ok(Self {
            warm_up,
            verifier: Verifier::new(may_reject),
            accepted: Histogram::new_with_bounds(1, MAX_MICROSECONDS, DIGITS)?,
            statuses: BTreeMap::new(),
            recorded: 0,
            late: 0,
            queued: 0,
            errors: Examples::default(),
        })
    }

    /// Verifies and records a response. Those of the warm-up are verified only.
    pub(super) fn record(
        &mut self,
        request: &Request,
        completed: &Completed,
        response: &Result<Response<Bytes>>,
    ) {
        match response {
            Ok(response) => {
                let received = received(response);
                self.verifier.check(
                    (completed.index, request),
                    completed.client,
                    completed.received,
                    (&received.0, received.1),
                );
            }
            Err(error) => self.errors.add(|| format!("{}: {error:#}", request.path)),
        }
        if completed.intended < self.warm_up {
            return;
        }
        self.recorded += 1;
        if completed.sent.saturating_sub(completed.intended) > LATE {
            // A connection that was not idle in time waited for the server and not for the generator.
            let waited = completed.idle_since > completed.intended;
            *(if waited { &mut self.queued } else { &mut self.late }) += 1;
        }
        let Ok(response) = response else { return };
        *self.statuses.entry(response.status().as_u16()).or_default() += 1;
        if response.status().as_u16() < 400 {
            let latency = completed.received.saturating_sub(completed.intended);
            self.accepted.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        }
    }

    /// The result of a load of this duration, without its warm-up.
    pub(super) fn finish(self, duration: Duration) -> OpenLoopOutcome {
        let (wrong, violations) = self.verifier.finish();
        OpenLoopOutcome {
            accepted: Latencies::new(&self.accepted),
            statuses: self.statuses,
            requests_per_second: crate::cpu::ratio(self.recorded, 1) / duration.as_secs_f64(),
            requests: self.recorded,
            late: self.late,
            queued: self.queued,
            errors: self.errors,
            wrong,
            violations,
        }
    }
}

impl Latencies {
    fn new(histogram: &Histogram<u64>) -> Self {
        let quantile = |quantile| histogram.value_at_quantile(quantile);
        Self {
            count: histogram.len(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: histogram.max(),
        }
    }
}
