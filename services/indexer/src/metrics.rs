//! The metrics of `ingest`, `sync`, `follow` and `mirror` (docs/operations/metrics.md, "Indexer").

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use chart_index_instrumentation::DATABASE_BUCKETS;
use chart_index_store::LastIngest;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Meter};
use strum::VariantArray;

use crate::clock::now_ms;
use crate::refusal_kind::RefusalKind;
use crate::report::ChartsetOutcome;

/// The boundaries of the duration of a pass above those of database operations, in seconds: a pass may apply
/// thousands of changes, and waits for the end of a rebuild.
const LONG_PASS_BUCKETS: [f64; 4] = [10.0, 30.0, 60.0, 300.0];

const NODE: &str = "chart_index.search.node";
const OUTCOME: &str = "chart_index.outcome";

#[derive(Debug)]
pub(crate) struct IngestMetrics {
    added: BoundCounter<u64>,
    updated: BoundCounter<u64>,
    unchanged: BoundCounter<u64>,
    refused: BoundCounter<u64>,
    failed: BoundCounter<u64>,
    /// By kind.
    refusals: Vec<BoundCounter<u64>>,
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
            refusals: RefusalKind::VARIANTS
                .iter()
                .map(|kind| refusals.bind(&[KeyValue::new("chart_index.reason", kind.into_str())]))
                .collect(),
        }
    }

    /// Records what was done with a chartset. Duplicates do not count, since their chartset does, nor does a
    /// dry run.
    pub(crate) fn record_chartset(&self, outcome: ChartsetOutcome) {
        match outcome {
            ChartsetOutcome::Added => self.added.add(1),
            ChartsetOutcome::Updated => self.updated.add(1),
            ChartsetOutcome::Unchanged => self.unchanged.add(1),
            ChartsetOutcome::Failed => self.failed.add(1),
            ChartsetOutcome::Read | ChartsetOutcome::Duplicate => (),
        }
    }

    /// Records song folders in which nothing could be indexed.
    pub(crate) fn record_refused_chartsets(&self, count: u64) {
        self.refused.add(count);
    }

    /// Records a file or chart that was not indexed.
    pub(crate) fn record_refusal(&self, kind: RefusalKind) {
        self.refusals[kind as usize].add(1);
    }
}

/// When an ingest last began and when one was last complete, as `follow` reads it.
#[derive(Debug)]
pub(crate) struct IngestTimes(Arc<Mutex<Option<LastIngest>>>);

impl IngestTimes {
    pub(crate) fn new(meter: &Meter) -> Self {
        let times = Arc::<Mutex<Option<LastIngest>>>::default();
        observe_time(
            meter,
            "chart_index.ingest.last_start",
            "Unix time at which the last ingest began",
            &times,
            |times| times.map(|times| times.began_at_ms),
        );
        observe_time(
            meter,
            "chart_index.ingest.last_success",
            "Unix time at which an ingest was last complete; 0 before the first one",
            &times,
            |times| times.map(|times| times.completed_at_ms.unwrap_or(0)),
        );
        Self(times)
    }

    /// Sets the times that were just read; `None` if they are not known, or before the first ingest.
    pub(crate) fn set(&self, times: Option<LastIngest>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = times;
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
    pub(crate) fn record_pass(&self, duration: Duration, put: u64, deleted: u64, quarantined: u64) {
        self.succeeded.record(duration.as_secs_f64());
        self.put.add(put);
        self.deleted.add(deleted);
        self.quarantined.add(quarantined);
        self.last_success.0.store(now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn record_pass_failure(&self, duration: Duration) {
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

/// Changes that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) changes: u64,
    /// The age of the first of them; `None` without changes.
    pub(crate) oldest_age: Option<Duration>,
}

/// The number and the age of changes that wait, which grows after it was read. They have no value while the
/// backlog is not known.
#[derive(Debug, Default)]
pub(crate) struct BacklogGauges(Mutex<Option<(Backlog, Instant)>>);

impl BacklogGauges {
    /// The changes that the node lacks that lags most.
    pub(crate) fn of_nodes(meter: &Meter) -> Arc<Self> {
        Self::new(
            meter,
            ("chart_index.sync.pending_changes", "Changes that a node lacks"),
            ("chart_index.sync.lag", "Age of the oldest change that a node lacks; 0 without one"),
        )
    }

    /// The changes that are not purged from the CDN.
    pub(crate) fn of_purges(meter: &Meter) -> Arc<Self> {
        Self::new(
            meter,
            ("chart_index.purge.pending_tags", "Tags that are to be purged from the CDN now"),
            ("chart_index.purge.lag", "Time for which the first of them is late, or for which purges fail"),
        )
    }

    fn new(
        meter: &Meter,
        (count_name, count_description): (&'static str, &'static str),
        (age_name, age_description): (&'static str, &'static str),
    ) -> Arc<Self> {
        let gauges = Arc::new(Self::default());
        let weak = Arc::downgrade(&gauges);
        meter
            .u64_observable_gauge(count_name)
            .with_unit("{change}")
            .with_description(count_description)
            .with_callback(move |observer| {
                if let Some((backlog, _)) = Self::backlog(&weak) {
                    observer.observe(backlog.changes, &[]);
                }
            })
            .build();
        let weak = Arc::downgrade(&gauges);
        meter
            .f64_observable_gauge(age_name)
            .with_unit("s")
            .with_description(age_description)
            .with_callback(move |observer| {
                if let Some((backlog, read)) = Self::backlog(&weak) {
                    let age = backlog.oldest_age.map_or(Duration::ZERO, |age| age + read.elapsed());
                    observer.observe(age.as_secs_f64(), &[]);
                }
            })
            .build();
        gauges
    }

    /// Sets the backlog that was just read; `None` if it is not known.
    pub(crate) fn set(&self, backlog: Option<Backlog>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            backlog.map(|backlog| (backlog, Instant::now()));
    }

    fn backlog(gauges: &Weak<Self>) -> Option<(Backlog, Instant)> {
        *gauges.upgrade()?.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `mirror` records.
#[derive(Debug)]
pub(crate) struct MirrorMetrics {
    applied: BoundCounter<u64>,
    refused: BoundCounter<u64>,
    progress: Arc<Mutex<MirrorProgress>>,
}

/// How far the mirror is. Each value is `None` until it is known.
#[derive(Debug, Default, Clone, Copy)]
struct MirrorProgress {
    /// When the oldest change was made that is known and not applied.
    oldest_ms: Option<i64>,
    is_at_end: bool,
    sequence: Option<u64>,
    last_success_ms: Option<i64>,
    /// The number of changes that are refused, and tried again.
    refused: Option<u64>,
}

impl MirrorMetrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let changes = meter
            .u64_counter("chart_index.mirror.changes")
            .with_unit("{change}")
            .with_description("Changes of the mirrored index by outcome")
            .build();
        let outcome = |outcome| changes.bind(&[KeyValue::new(OUTCOME, outcome)]);
        let progress = Arc::<Mutex<MirrorProgress>>::default();
        observe_time(
            meter,
            "chart_index.mirror.lag",
            "Age of the oldest change of the mirrored index that is not applied; 0 at the end of its change feed",
            &progress,
            |progress| {
                let age_ms = progress.oldest_ms.map(|oldest_ms| now_ms().saturating_sub(oldest_ms).max(0));
                age_ms.or(progress.is_at_end.then_some(0))
            },
        );
        observe_time(
            meter,
            "chart_index.mirror.last_success",
            "Unix time at which changes of the mirrored index were last applied, or found to be applied",
            &progress,
            |progress| progress.last_success_ms,
        );
        observe_number(
            meter,
            "chart_index.mirror.sequence",
            "Last sequence of the mirrored index that is applied",
            &progress,
            |progress| progress.sequence,
        );
        observe_number(
            meter,
            "chart_index.mirror.refusals",
            "Changes of the mirrored index that are refused, and tried again",
            &progress,
            |progress| progress.refused,
        );
        Self { applied: outcome("applied"), refused: outcome("refused"), progress }
    }

    /// Records a page that was received, with the time of its first change.
    pub(crate) fn record_page(&self, oldest_ms: Option<i64>) {
        if oldest_ms.is_some() {
            self.progress().oldest_ms = oldest_ms;
        }
    }

    /// Records a page that was applied.
    pub(crate) fn record_position(&self, sequence: u64) {
        let mut progress = self.progress();
        (progress.sequence, progress.last_success_ms) = (Some(sequence), Some(now_ms()));
    }

    /// Records that the end of the feed was reached.
    pub(crate) fn record_end(&self) {
        let mut progress = self.progress();
        (progress.oldest_ms, progress.is_at_end) = (None, true);
    }

    pub(crate) fn record_applied(&self, changes: u64) {
        self.applied.add(changes);
    }

    /// Records how many changes are refused, and tried again.
    pub(crate) fn record_refusals(&self, refused: u64) {
        self.progress().refused = Some(refused);
    }

    pub(crate) fn record_refusal(&self) {
        self.refused.add(1);
    }

    fn progress(&self) -> MutexGuard<'_, MirrorProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn current<T: Copy>(state: &Weak<Mutex<T>>) -> Option<T> {
    Some(*state.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Observes a number, which `read` returns while it is known.
fn observe_number(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
    progress: &Arc<Mutex<MirrorProgress>>,
    read: fn(MirrorProgress) -> Option<u64>,
) {
    let weak = Arc::downgrade(progress);
    meter
        .u64_observable_gauge(name)
        .with_description(description)
        .with_callback(move |observer| {
            if let Some(number) = current(&weak).and_then(read) {
                observer.observe(number, &[]);
            }
        })
        .build();
}

/// Observes a time, which `read` returns in milliseconds while it is known.
fn observe_time<T: Copy + Send + 'static>(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
    state: &Arc<Mutex<T>>,
    read: fn(T) -> Option<i64>,
) {
    let weak = Arc::downgrade(state);
    meter
        .f64_observable_gauge(name)
        .with_unit("s")
        .with_description(description)
        .with_callback(move |observer| {
            if let Some(time_ms) = current(&weak).and_then(read) {
                observer.observe(seconds(time_ms), &[]);
            }
        })
        .build();
}

#[expect(clippy::cast_precision_loss, reason = "a time in milliseconds has at most 43 bits")]
const fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1_000.0
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected numbers have exact representations")]
mod tests {
    use opentelemetry::metrics::MeterProvider;
    use opentelemetry_sdk::metrics::SdkMeterProvider;
    use prometheus::{Registry, TextEncoder};

    use super::*;

    /// Meters of one test, and what Prometheus would scrape.
    struct Metrics {
        provider: SdkMeterProvider,
        registry: Registry,
    }

    impl Metrics {
        fn new() -> Self {
            let registry = Registry::new();
            let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone());
            let reader = exporter.scope_info_enabled(false).build().unwrap();
            Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), registry }
        }

        fn meter(&self) -> Meter {
            self.provider.meter("test")
        }

        /// The samples of the metrics whose names start with the prefix, in their order.
        fn samples(&self, prefix: &str) -> Vec<String> {
            let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
            text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
        }

        fn value(&self, sample: &str) -> f64 {
            let samples = self.samples(&format!("{sample} "));
            let [sample] = &samples[..] else { panic!("{sample}: {samples:?}") };
            sample.rsplit_once(' ').unwrap().1.parse().unwrap()
        }
    }

    #[test]
    fn chartsets_are_counted_by_outcome() {
        let metrics = Metrics::new();
        let ingest = IngestMetrics::new(&metrics.meter());
        for outcome in [
            ChartsetOutcome::Added,
            ChartsetOutcome::Added,
            ChartsetOutcome::Updated,
            ChartsetOutcome::Unchanged,
            ChartsetOutcome::Failed,
            ChartsetOutcome::Read,
            ChartsetOutcome::Duplicate,
        ] {
            ingest.record_chartset(outcome);
        }
        ingest.record_refused_chartsets(3);
        assert_eq!(
            metrics.samples("chart_index_ingest_chartsets_total"),
            [("added", 2), ("failed", 1), ("refused", 3), ("unchanged", 1), ("updated", 1)].map(
                |(outcome, count)| format!(
                    "chart_index_ingest_chartsets_total{{chart_index_outcome=\"{outcome}\"}} {count}"
                )
            )
        );
    }

    #[test]
    fn refusals_are_counted_by_kind() {
        let metrics = Metrics::new();
        let ingest = IngestMetrics::new(&metrics.meter());
        for &kind in RefusalKind::VARIANTS {
            ingest.record_refusal(kind);
        }
        ingest.record_refusal(RefusalKind::NoChart);
        let series = metrics.samples("chart_index_ingest_refusals_total");
        assert_eq!(series.len(), RefusalKind::VARIANTS.len(), "{series:?}");
        let count = |kind| {
            metrics.value(&format!("chart_index_ingest_refusals_total{{chart_index_reason=\"{kind}\"}}"))
        };
        assert_eq!((count("no_chart"), count("unreadable")), (2.0, 1.0));
    }

    #[test]
    fn passes_are_recorded_per_node() {
        let metrics = Metrics::new();
        let nodes = NodeMetrics::of_nodes(&metrics.meter(), &["a:7700", "b:7700"]);
        assert_eq!(metrics.samples("chart_index_sync_last_success_seconds"), Vec::<String>::new());
        nodes[0].record_pass(Duration::from_secs(40), 5, 2, 1);
        nodes[1].record_pass_failure(Duration::from_secs(400));
        let documents = |node, action| {
            let labels = format!("chart_index_search_node=\"{node}\",chart_index_sync_action=\"{action}\"");
            metrics.value(&format!("chart_index_sync_documents_total{{{labels}}}"))
        };
        assert_eq!(
            ["put", "delete", "quarantine"].map(|action| documents("a:7700", action)),
            [5.0, 2.0, 1.0]
        );
        let passes =
            |bucket| metrics.value(&format!("chart_index_sync_pass_duration_seconds_bucket{bucket}"));
        for (outcome, node, boundary, count) in [
            ("success", "a:7700", "30", 0.0),
            ("success", "a:7700", "60", 1.0),
            ("error", "b:7700", "300", 0.0),
            ("error", "b:7700", "+Inf", 1.0),
        ] {
            let labels = format!("chart_index_outcome=\"{outcome}\",chart_index_search_node=\"{node}\"");
            assert_eq!(passes(format!("{{{labels},le=\"{boundary}\"}}")), count, "{labels} {boundary}");
        }
        let last = metrics.samples("chart_index_sync_last_success_seconds");
        assert!(last.len() == 1 && last[0].contains("{chart_index_search_node=\"a:7700\"} "), "{last:?}");
    }

    #[test]
    fn times_of_ingests_have_no_value_before_the_first() {
        let metrics = Metrics::new();
        let times = IngestTimes::new(&metrics.meter());
        assert_eq!(metrics.samples("chart_index_ingest"), Vec::<String>::new());
        times.set(Some(LastIngest { began_at_ms: 1_500, completed_at_ms: None }));
        let value = |name| metrics.value(&format!("chart_index_ingest_last_{name}_seconds"));
        assert_eq!((value("start"), value("success")), (1.5, 0.0));
        times.set(Some(LastIngest { began_at_ms: 1_500, completed_at_ms: Some(2_000) }));
        assert_eq!((value("start"), value("success")), (1.5, 2.0));
    }

    #[test]
    fn backlog_has_no_value_while_it_is_unknown() {
        let metrics = Metrics::new();
        let gauges = BacklogGauges::of_nodes(&metrics.meter());
        assert_eq!(metrics.samples("chart_index_sync"), Vec::<String>::new());
        gauges.set(Some(Backlog { changes: 7, oldest_age: Some(Duration::from_secs(90)) }));
        assert_eq!(metrics.value("chart_index_sync_pending_changes"), 7.0);
        let age = metrics.value("chart_index_sync_lag_seconds");
        assert!((90.0..100.0).contains(&age), "{age}");
        gauges.set(Some(Backlog { changes: 0, oldest_age: None }));
        assert_eq!(metrics.value("chart_index_sync_lag_seconds"), 0.0);
        gauges.set(None);
        assert_eq!(metrics.samples("chart_index_sync"), Vec::<String>::new());
    }
}
