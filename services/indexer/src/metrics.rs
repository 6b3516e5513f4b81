//! The metrics of `ingest` and `sync` (docs/operations/metrics.md, "Indexer").

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use chart_index_instrumentation::DATABASE_BUCKETS;
use chart_index_store::Backlog;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Meter};

use crate::clock::now_ms;
use crate::refusal_kind::RefusalKind;
use crate::report::ChartsetOutcome;

/// The boundaries of the duration of a pass above those of database operations, in seconds: a pass may apply thousands of
/// changes, and waits for the end of a rebuild.
const LONG_PASS_BUCKETS: [f64; 4] = [10.0, 30.0, 60.0, 300.0];

/// The name of the label of a node.
const NODE: &str = "chart_index.search.node";
/// The name of the label of an outcome.
const OUTCOME: &str = "chart_index.outcome";

/// What an ingest counts.
#[derive(Debug)]
pub(crate) struct IngestMetrics {
    added: BoundCounter<u64>,
    updated: BoundCounter<u64>,
    unchanged: BoundCounter<u64>,
    refused: BoundCounter<u64>,
    failed: BoundCounter<u64>,
    /// By number of the kind.
    refusals: [BoundCounter<u64>; RefusalKind::ALL.len()],
}

impl IngestMetrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let chartsets = meter
            .u64_counter("chart_index.ingest.chartsets")
            .with_unit("{chartset}")
            .with_description("Chartsets of ingests by outcome")
            .build();
        let refusals = meter
            .u64_counter("chart_index.ingest.refusals")
            .with_unit("{file}")
            .with_description("Files and charts that were not indexed")
            .build();
        let outcome = |outcome| chartsets.bind(&[KeyValue::new(OUTCOME, outcome)]);
        Self {
            added: outcome("added"),
            updated: outcome("updated"),
            unchanged: outcome("unchanged"),
            refused: outcome("refused"),
            failed: outcome("failed"),
            refusals: RefusalKind::ALL
                .map(|kind| refusals.bind(&[KeyValue::new("chart_index.reason", kind.as_str())])),
        }
    }

    /// Records what was done with a chartset. Duplicates do not count, since their chartset does, nor does a dry run.
    pub(crate) fn chartset(&self, outcome: ChartsetOutcome) {
        match outcome {
            ChartsetOutcome::Added => self.added.add(1),
            ChartsetOutcome::Updated => self.updated.add(1),
            ChartsetOutcome::Unchanged => self.unchanged.add(1),
            ChartsetOutcome::Failed => self.failed.add(1),
            ChartsetOutcome::Read | ChartsetOutcome::Duplicate => (),
        }
    }

    /// Records song folders in which nothing could be indexed.
    pub(crate) fn refused_chartsets(&self, count: u64) {
        self.refused.add(count);
    }

    /// Records a file or chart that was not indexed.
    pub(crate) fn refusal(&self, kind: RefusalKind) {
        self.refusals[kind as usize].add(1);
    }
}

/// What `sync` records about a node.
#[derive(Debug)]
pub(crate) struct NodeMetrics {
    succeeded: BoundHistogram<f64>,
    failed: BoundHistogram<f64>,
    put: BoundCounter<u64>,
    deleted: BoundCounter<u64>,
    quarantined: BoundCounter<u64>,
    last_success: Arc<LastSuccess>,
}

/// When the last pass succeeded, in Unix epoch milliseconds; 0 before the first one.
#[derive(Debug, Default)]
struct LastSuccess(AtomicI64);

impl NodeMetrics {
    /// The metrics of the nodes with these addresses, in their order.
    pub(crate) fn of_nodes(meter: &Meter, addresses: &[&str]) -> Vec<Self> {
        let duration = meter
            .f64_histogram("chart_index.sync.pass.duration")
            .with_unit("s")
            .with_description("Duration of a sync pass")
            .with_boundaries([&DATABASE_BUCKETS[..], &LONG_PASS_BUCKETS].concat())
            .build();
        let documents = meter
            .u64_counter("chart_index.sync.documents")
            .with_unit("{document}")
            .with_description("Documents that sync passes wrote, deleted or left out")
            .build();
        let node_metrics = |address: &&str| {
            let node = KeyValue::new(NODE, (*address).to_owned());
            let outcome = |outcome| duration.bind(&[node.clone(), KeyValue::new(OUTCOME, outcome)]);
            let action =
                |action| documents.bind(&[node.clone(), KeyValue::new("chart_index.sync.action", action)]);
            Self {
                succeeded: outcome("success"),
                failed: outcome("error"),
                put: action("put"),
                deleted: action("delete"),
                quarantined: action("quarantine"),
                last_success: Arc::default(),
            }
        };
        let nodes: Vec<Self> = addresses.iter().map(node_metrics).collect();
        observe_last_success(meter, addresses.iter().zip(&nodes));
        nodes
    }

    /// Records a pass that succeeded, with the numbers of documents.
    pub(crate) fn pass_succeeded(&self, duration: Duration, put: u64, deleted: u64, quarantined: u64) {
        self.succeeded.record(duration.as_secs_f64());
        self.put.add(put);
        self.deleted.add(deleted);
        self.quarantined.add(quarantined);
        self.last_success.0.store(now_ms(), Ordering::Relaxed);
    }

    /// Records a pass that failed.
    pub(crate) fn pass_failed(&self, duration: Duration) {
        self.failed.record(duration.as_secs_f64());
    }
}

fn observe_last_success<'a>(meter: &Meter, nodes: impl Iterator<Item = (&'a &'a str, &'a NodeMetrics)>) {
    let nodes: Vec<_> = nodes
        .map(|(address, node)| {
            (Arc::downgrade(&node.last_success), [KeyValue::new(NODE, (*address).to_owned())])
        })
        .collect();
    meter
        .f64_observable_gauge("chart_index.sync.last_success")
        .with_unit("s")
        .with_description("Unix time of the last sync pass that succeeded")
        .with_callback(move |observer| {
            for (last_success, labels) in &nodes {
                let time_ms = last_success.upgrade().map_or(0, |last| last.0.load(Ordering::Relaxed));
                if time_ms > 0 {
                    observer.observe(seconds(time_ms), labels);
                }
            }
        })
        .build();
}

/// The gauges of the outbox. They have no value while the backlog is not known.
#[derive(Debug, Default)]
pub(crate) struct OutboxGauges(Mutex<Option<Backlog>>);

impl OutboxGauges {
    pub(crate) fn new(meter: &Meter) -> Arc<Self> {
        let gauges = Arc::new(Self::default());
        let weak = Arc::downgrade(&gauges);
        meter
            .u64_observable_gauge("chart_index.outbox.changes")
            .with_unit("{change}")
            .with_description("Changes in the outbox that a node lacks")
            .with_callback(move |observer| {
                if let Some(backlog) = Self::backlog(&weak) {
                    observer.observe(backlog.changes, &[]);
                }
            })
            .build();
        let weak = Arc::downgrade(&gauges);
        meter
            .f64_observable_gauge("chart_index.outbox.oldest_age")
            .with_unit("s")
            .with_description("Age of the oldest change in the outbox that a node lacks")
            .with_callback(move |observer| {
                if let Some(backlog) = Self::backlog(&weak) {
                    let age_ms = backlog.oldest_ms.map_or(0, |oldest_ms| now_ms() - oldest_ms);
                    observer.observe(seconds(age_ms.max(0)), &[]);
                }
            })
            .build();
        gauges
    }

    /// Sets the backlog of the node that lags most; `None` if it is not known.
    pub(crate) fn set(&self, backlog: Option<Backlog>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = backlog;
    }

    fn backlog(gauges: &Weak<Self>) -> Option<Backlog> {
        *gauges.upgrade()?.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time in milliseconds has at most 43 bits")]
const fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1_000.0
}
