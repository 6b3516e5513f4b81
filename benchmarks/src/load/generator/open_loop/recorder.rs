//! What became of the requests of an open loop.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bytes::Bytes;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::{CreationError, Histogram};
use hyper::Response;
use serde::Serialize;

use super::received;
use crate::scenario::Request;
use crate::verify::{Examples, Exchange, Verifier};

/// A start that is later than this counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Latencies are recorded in microseconds with this many significant digits.
const DIGITS: u8 = 3;
/// The longest latency that is recorded as it is.
const MAX_MICROSECONDS: u64 = 3_600_000_000;
/// The length of an interval of the log.
const INTERVAL: Duration = Duration::from_secs(1);

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
    /// By status, an interval after the other.
    intervals: BTreeMap<u16, Vec<Histogram<u64>>>,
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
    /// The HDR interval log: a histogram for each second and status.
    pub(crate) hdr_log: String,
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
    /// Pairs of a quantile and its latency, for plots.
    pub(crate) quantiles: Vec<(f64, u64)>,
}

impl Recorder {
    pub(super) fn new(warm_up: Duration, may_reject: bool) -> Self {
        Self {
            warm_up,
            verifier: Verifier::new(may_reject),
            intervals: BTreeMap::new(),
            recorded: 0,
            late: 0,
            queued: 0,
            errors: Examples::default(),
        }
    }

    /// Verifies and records a response; returns its status, 0 for an error. Those of the warm-up are verified only.
    pub(super) fn record(
        &mut self,
        request: &Request,
        completed: &Completed,
        response: &Result<Response<Bytes>>,
    ) -> u16 {
        let status = match response {
            Ok(response) => {
                let exchange = Exchange { sent: completed.sent, received: completed.received };
                let received = received(response);
                self.verifier.check(
                    (completed.index, request),
                    completed.client,
                    exchange,
                    (&received.0, received.1),
                );
                response.status().as_u16()
            }
            Err(error) => {
                self.errors.add(|| format!("{}: {error:#}", request.path));
                0
            }
        };
        let Some(at) = completed.intended.checked_sub(self.warm_up) else { return status };
        self.recorded += 1;
        if completed.sent.saturating_sub(completed.intended) > LATE {
            // A connection that was not idle in time waited for the server and not for the generator.
            let waited = completed.idle_since > completed.intended;
            *(if waited { &mut self.queued } else { &mut self.late }) += 1;
        }
        if status != 0 {
            let latency = completed.received.saturating_sub(completed.intended);
            self.add(status, at, latency);
        }
        status
    }

    fn add(&mut self, status: u16, at: Duration, latency: Duration) {
        let interval = usize::try_from(at.as_secs() / INTERVAL.as_secs()).unwrap_or_default();
        let intervals = self.intervals.entry(status).or_default();
        while intervals.len() <= interval {
            // Fails for other bounds and digits only.
            let Ok(histogram) = histogram() else { return };
            intervals.push(histogram);
        }
        intervals[interval].saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// The result of a load of this duration, without its warm-up.
    pub(super) fn finish(self, duration: Duration) -> Result<OpenLoopOutcome> {
        let hdr_log = hdr_log(&self.intervals)?;
        let mut accepted = histogram()?;
        for (_, intervals) in self.intervals.iter().filter(|(status, _)| **status < 400) {
            for interval in intervals {
                accepted.add(interval)?;
            }
        }
        let statuses = self
            .intervals
            .iter()
            .map(|(status, intervals)| (*status, intervals.iter().map(Histogram::len).sum()));
        let (wrong, violations) = self.verifier.finish();
        Ok(OpenLoopOutcome {
            accepted: Latencies::new(&accepted),
            statuses: statuses.collect(),
            requests_per_second: crate::cpu::ratio(self.recorded, 1) / duration.as_secs_f64(),
            requests: self.recorded,
            late: self.late,
            queued: self.queued,
            errors: self.errors,
            wrong,
            violations,
            hdr_log,
        })
    }
}

impl Latencies {
    fn new(histogram: &Histogram<u64>) -> Self {
        let quantile = |quantile| histogram.value_at_quantile(quantile);
        let points = histogram
            .iter_quantiles(5)
            .map(|point| (point.quantile_iterated_to(), point.value_iterated_to()));
        Self {
            count: histogram.len(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: histogram.max(),
            quantiles: points.collect(),
        }
    }
}

fn histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1, MAX_MICROSECONDS, DIGITS)
}

/// The log as `HdrHistogram` tools read it, tagged by status.
fn hdr_log(intervals: &BTreeMap<u16, Vec<Histogram<u64>>>) -> Result<String> {
    let (mut log, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_base_time(SystemTime::UNIX_EPOCH).with_max_value_divisor(1_000.0);
    let mut writer = builder.begin_log_with(&mut log, &mut serializer).context("cannot write the HDR log")?;
    for (status, histograms) in intervals {
        let tag = format!("status-{status}");
        for (second, histogram) in (0..).zip(histograms) {
            let start = INTERVAL * second;
            let written = writer.write_histogram(histogram, start, INTERVAL, Tag::new(&tag));
            written.map_err(|error| anyhow::anyhow!("cannot write the HDR log: {error:?}"))?;
        }
    }
    Ok(String::from_utf8(log)?)
}
