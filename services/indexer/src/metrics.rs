//! The metrics of `ingest`, `sync`, `follow` and `mirror` (docs/operations/metrics.md, "Indexer").

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chart_index_chartfile::RefusalKind;
use chart_index_instrumentation::{Counter, Histogram, Metrics};
use chart_index_store::LastIngest;
use strum::VariantArray;

use crate::clock::now_ms;
use crate::report::ChartsetOutcome;

#[derive(Debug)]
pub(crate) struct IngestMetrics {
    added: Counter,
    updated: Counter,
    unchanged: Counter,
    refused: Counter,
    failed: Counter,
    /// By kind.
    refusals: Vec<Counter>,
}

impl IngestMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let outcome = |outcome| metrics.chart_index_ingest_chartsets_total.with([outcome]);
        let refusals = |kind: &RefusalKind| metrics.chart_index_ingest_refusals_total.with([kind.into()]);
        Self {
            added: outcome("added"),
            updated: outcome("updated"),
            unchanged: outcome("unchanged"),
            refused: outcome("refused"),
            failed: outcome("failed"),
            refusals: RefusalKind::VARIANTS.iter().map(refusals).collect(),
        }
    }

    /// Records what was done with a chartset. Duplicates do not count, since their chartset does, nor does a
    /// dry run.
    pub(crate) fn record_chartset(&self, outcome: ChartsetOutcome) {
        match outcome {
            ChartsetOutcome::Added => self.added.inc(),
            ChartsetOutcome::Updated => self.updated.inc(),
            ChartsetOutcome::Unchanged => self.unchanged.inc(),
            ChartsetOutcome::Failed => self.failed.inc(),
            ChartsetOutcome::Read | ChartsetOutcome::Duplicate => (),
        }
    }

    /// Records song folders in which nothing could be indexed.
    pub(crate) fn record_refused_chartsets(&self, count: u64) {
        self.refused.inc_by(count);
    }

    /// Records a file or chart that was not indexed.
    pub(crate) fn record_refusal(&self, kind: RefusalKind) {
        self.refusals[kind as usize].inc();
    }
}

/// When an ingest last began and when one was last complete, as `follow` reads it.
#[derive(Debug)]
pub(crate) struct IngestTimes(Arc<Mutex<Option<LastIngest>>>);

impl IngestTimes {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let times = Arc::<Mutex<Option<LastIngest>>>::default();
        metrics.observe(&times, |times, metrics| {
            let Some(times) = *lock(times) else { return };
            metrics.chart_index_ingest_last_start_seconds.set([], seconds(times.began_at_ms));
            let completed = seconds(times.completed_at_ms.unwrap_or(0));
            metrics.chart_index_ingest_last_success_seconds.set([], completed);
        });
        Self(times)
    }

    /// Sets the times that were just read; `None` if they are not known, or before the first ingest.
    pub(crate) fn set(&self, times: Option<LastIngest>) {
        *lock(&self.0) = times;
    }
}

/// What `sync` records about a node.
#[derive(Debug)]
pub(crate) struct NodeMetrics {
    succeeded: Histogram,
    failed: Histogram,
    put: Counter,
    deleted: Counter,
    quarantined: Counter,
    /// When the last pass succeeded, in Unix epoch milliseconds; 0 before the first one.
    last_success: Arc<AtomicI64>,
}

impl NodeMetrics {
    /// The metrics of the node with this address.
    pub(crate) fn new(metrics: &Metrics, address: &str) -> Self {
        let last_success = Arc::<AtomicI64>::default();
        let node = address.to_owned();
        metrics.observe(&last_success, move |last_success, metrics| {
            let time = Some(last_success.load(Ordering::Relaxed)).filter(|time_ms| *time_ms > 0);
            metrics.chart_index_sync_last_success_seconds.set_known([&node], time.map(seconds));
        });
        let outcome = |outcome| metrics.chart_index_sync_pass_duration_seconds.with([address, outcome]);
        let action = |action| metrics.chart_index_sync_documents_total.with([address, action]);
        Self {
            succeeded: outcome("success"),
            failed: outcome("error"),
            put: action("put"),
            deleted: action("delete"),
            quarantined: action("quarantine"),
            last_success,
        }
    }

    /// Records a pass that succeeded, with the numbers of documents.
    pub(crate) fn record_pass(&self, duration: Duration, put: u64, deleted: u64, quarantined: u64) {
        self.succeeded.observe(duration.as_secs_f64());
        self.put.inc_by(put);
        self.deleted.inc_by(deleted);
        self.quarantined.inc_by(quarantined);
        self.last_success.store(now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn record_pass_failure(&self, duration: Duration) {
        self.failed.observe(duration.as_secs_f64());
    }
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
    pub(crate) fn of_nodes(metrics: &Metrics) -> Arc<Self> {
        Self::new(metrics, |metrics, changes, age| {
            metrics.chart_index_sync_pending_changes.set([], changes);
            metrics.chart_index_sync_lag_seconds.set([], age);
        })
    }

    /// The changes that are not purged from the CDN.
    pub(crate) fn of_purges(metrics: &Metrics) -> Arc<Self> {
        Self::new(metrics, |metrics, tags, age| {
            metrics.chart_index_purge_pending_tags.set([], tags);
            metrics.chart_index_purge_lag_seconds.set([], age);
        })
    }

    fn new(metrics: &Metrics, report: fn(&Metrics, u64, Duration)) -> Arc<Self> {
        let gauges = Arc::new(Self::default());
        metrics.observe(&gauges, move |gauges, metrics| {
            let Some((backlog, read)) = *lock(&gauges.0) else { return };
            let age = backlog.oldest_age.map_or(Duration::ZERO, |age| age + read.elapsed());
            report(metrics, backlog.changes, age);
        });
        gauges
    }

    /// Sets the backlog that was just read; `None` if it is not known.
    pub(crate) fn set(&self, backlog: Option<Backlog>) {
        *lock(&self.0) = backlog.map(|backlog| (backlog, Instant::now()));
    }
}

/// What `mirror` records.
#[derive(Debug)]
pub(crate) struct MirrorMetrics {
    applied: Counter,
    refused: Counter,
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

impl MirrorProgress {
    fn report(self, metrics: &Metrics) {
        let age_ms = self.oldest_ms.map(|oldest_ms| now_ms().saturating_sub(oldest_ms).max(0));
        let lag_ms = age_ms.or(self.is_at_end.then_some(0));
        metrics.chart_index_mirror_lag_seconds.set_known([], lag_ms.map(seconds));
        let last_success = self.last_success_ms.map(seconds);
        metrics.chart_index_mirror_last_success_seconds.set_known([], last_success);
        metrics.chart_index_mirror_sequence.set_known([], self.sequence);
        metrics.chart_index_mirror_refusals.set_known([], self.refused);
    }
}

impl MirrorMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let progress = Arc::<Mutex<MirrorProgress>>::default();
        metrics.observe(&progress, |progress, metrics| lock(progress).report(metrics));
        let outcome = |outcome| metrics.chart_index_mirror_changes_total.with([outcome]);
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
        self.applied.inc_by(changes);
    }

    /// Records how many changes are refused, and tried again.
    pub(crate) fn record_refusals(&self, refused: u64) {
        self.progress().refused = Some(refused);
    }

    pub(crate) fn record_refusal(&self) {
        self.refused.inc();
    }

    fn progress(&self) -> MutexGuard<'_, MirrorProgress> {
        lock(&self.progress)
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::cast_precision_loss, reason = "a time in milliseconds has at most 43 bits")]
const fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1_000.0
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected numbers have exact representations")]
mod tests {
    use chart_index_tests::series;

    use super::*;

    /// The number of series whose names start with the prefix.
    fn count(metrics: &Metrics, prefix: &str) -> usize {
        series(metrics).iter().filter(|series| series.name.starts_with(prefix)).count()
    }

    /// The value of the only series with this name and these labels.
    fn value(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found: Vec<_> = series(metrics).into_iter().filter(|series| series.is(name, labels)).collect();
        let [series] = &found[..] else { panic!("{name}: {found:?}") };
        series.value
    }

    #[test]
    fn chartsets_are_counted_by_outcome() {
        let metrics = Metrics::default();
        let ingest = IngestMetrics::new(&metrics);
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
        let outcomes = ["added", "failed", "refused", "unchanged", "updated"];
        let counts = outcomes.map(|outcome| {
            value(&metrics, "chart_index_ingest_chartsets_total", &[("chart_index_outcome", outcome)])
        });
        assert_eq!(counts, [2.0, 1.0, 3.0, 1.0, 1.0]);
    }

    #[test]
    fn refusals_are_counted_by_kind() {
        let metrics = Metrics::default();
        let ingest = IngestMetrics::new(&metrics);
        for &kind in RefusalKind::VARIANTS {
            ingest.record_refusal(kind);
        }
        ingest.record_refusal(RefusalKind::NoChart);
        assert_eq!(count(&metrics, "chart_index_ingest_refusals"), RefusalKind::VARIANTS.len());
        let refusals =
            |kind| value(&metrics, "chart_index_ingest_refusals_total", &[("chart_index_reason", kind)]);
        assert_eq!((refusals("no_chart"), refusals("unreadable")), (2.0, 1.0));
    }

    #[test]
    fn passes_are_recorded_per_node() {
        let metrics = Metrics::default();
        let nodes = ["a:7700", "b:7700"].map(|address| NodeMetrics::new(&metrics, address));
        assert_eq!(count(&metrics, "chart_index_sync_last_success"), 0);
        nodes[0].record_pass(Duration::from_secs(40), 5, 2, 1);
        nodes[1].record_pass_failure(Duration::from_secs(400));
        let node = |address| ("chart_index_search_node", address);
        let documents = |action| {
            let labels = [node("a:7700"), ("chart_index_sync_action", action)];
            value(&metrics, "chart_index_sync_documents_total", &labels)
        };
        assert_eq!(["put", "delete", "quarantine"].map(documents), [5.0, 2.0, 1.0]);
        for (address, outcome, passes) in
            [("a:7700", "success", 1.0), ("a:7700", "error", 0.0), ("b:7700", "error", 1.0)]
        {
            let labels = [node(address), ("chart_index_outcome", outcome)];
            assert_eq!(
                value(&metrics, "chart_index_sync_pass_duration_seconds", &labels),
                passes,
                "{labels:?}"
            );
        }
        assert_eq!(count(&metrics, "chart_index_sync_last_success"), 1);
        value(&metrics, "chart_index_sync_last_success_seconds", &[node("a:7700")]);
    }

    #[test]
    fn times_of_ingests_have_no_value_before_the_first() {
        let metrics = Metrics::default();
        let times = IngestTimes::new(&metrics);
        assert_eq!(count(&metrics, "chart_index_ingest"), 0);
        times.set(Some(LastIngest { began_at_ms: 1_500, completed_at_ms: None }));
        let time = |name| value(&metrics, &format!("chart_index_ingest_last_{name}_seconds"), &[]);
        assert_eq!((time("start"), time("success")), (1.5, 0.0));
        times.set(Some(LastIngest { began_at_ms: 1_500, completed_at_ms: Some(2_000) }));
        assert_eq!((time("start"), time("success")), (1.5, 2.0));
    }

    #[test]
    fn backlog_has_no_value_while_it_is_unknown() {
        let metrics = Metrics::default();
        let gauges = BacklogGauges::of_nodes(&metrics);
        assert_eq!(count(&metrics, "chart_index_sync"), 0);
        gauges.set(Some(Backlog { changes: 7, oldest_age: Some(Duration::from_secs(90)) }));
        assert_eq!(value(&metrics, "chart_index_sync_pending_changes", &[]), 7.0);
        let age = value(&metrics, "chart_index_sync_lag_seconds", &[]);
        assert!((90.0..100.0).contains(&age), "{age}");
        gauges.set(Some(Backlog { changes: 0, oldest_age: None }));
        assert_eq!(value(&metrics, "chart_index_sync_lag_seconds", &[]), 0.0);
        gauges.set(None);
        assert_eq!(count(&metrics, "chart_index_sync"), 0);
    }
}
