//! The metrics of the programs, and how Prometheus reads them.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

use crate::metric_family::{Counter, Family, Gauge, Histogram, Kind, MetricRow, SecondsCounter};

/// The upper bounds of histograms of requests, in seconds.
const REQUEST_BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0];

/// The upper bounds of histograms of fills and of database operations, in seconds.
const DATABASE_BUCKETS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// The upper bounds of the duration of a pass, in seconds: a pass may apply thousands of changes, and waits for
/// the end of a rebuild.
const PASS_BUCKETS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0, 30.0, 60.0,
    300.0,
];

/// Reads values that are kept elsewhere, at a scrape. False once its source is gone.
type Observer = Box<dyn Fn(&Metrics) -> bool + Send + Sync>;

/// Declares the metrics: sections of docs/operations/metrics.md, each with its rows. A row is the text of
/// `# HELP`, the name in Prometheus, the kind, the buckets of a histogram, and the names of the labels.
macro_rules! metrics {
    ($($section:literal {
        $($(#[doc = $help:literal])+ $name:ident: $kind:ident $(<$buckets:ident>)? ($($label:ident),*);)+
    })+) => {
        /// The metrics of a process.
        pub struct Metrics {
            $($($(#[doc = $help])+ pub $name: Family<$kind, { <[&str]>::len(&[$(stringify!($label)),*]) }>,)+)+
            registry: Registry,
            observers: Mutex<Vec<Observer>>,
        }

        impl Default for Metrics {
            /// Metrics without series: those of a test.
            fn default() -> Self {
                let registry = Registry::new();
                let [$($($name),+),+] = &Self::TABLE;
                Self {
                    $($($name: Family::new(&registry, $name),)+)+
                    registry,
                    observers: Mutex::default(),
                }
            }
        }

        impl Metrics {
            /// All metrics, in the order of the documentation.
            pub const TABLE: [MetricRow; { <[&str]>::len(&[$($(stringify!($name)),+),+]) }] = [$($(MetricRow {
                section: $section,
                name: stringify!($name),
                kind: <$kind as Kind>::NAME,
                labels: &[$(stringify!($label)),*],
                buckets: [$($buckets,)? &[] as &[f64]][0],
                help: concat!($($help),+).trim_ascii_start(),
            },)+)+];

            /// Removes the series of all metrics of this kind.
            fn clear(&self, kinds: &[&str]) {
                $($(if kinds.contains(&<$kind as Kind>::NAME) { self.$name.clear(); })+)+
            }
        }
    };
}

metrics! {
    "HTTP" {
        /// From the head of a request to its response, without the wait for a change
        http_server_request_duration_seconds: Histogram<REQUEST_BUCKETS>(
            chart_index_group, http_request_method, http_route, http_response_status_code, error_type);
        /// Requests in flight
        http_server_active_requests: Gauge();
        /// `MAX_REQUESTS_IN_FLIGHT`
        chart_index_http_requests_limit: Gauge();
        /// Requests that were 503 because of a limit
        chart_index_http_requests_shed_total: Counter(chart_index_group, chart_index_reason);
        /// Open connections
        chart_index_http_connections: Gauge();
        /// `MAX_CONNECTIONS`, within the open file limit
        chart_index_http_connections_limit: Gauge();
        /// Connections that ended: `completed`, `timeout`, `client_error`, `peer_limit`
        /// (`MAX_CONNECTIONS_PER_PEER`), `shutdown`
        chart_index_http_connections_closed_total: Counter(chart_index_reason);
        /// Requests that wait for a change, up to `MAX_LONG_POLLS`
        chart_index_long_polls_active: Gauge();
        /// Whether `/readyz` is 200
        chart_index_ready: Gauge();
        /// Whether the process shuts down
        chart_index_draining: Gauge();
    }

    "Cache" {
        /// Reads of a tier. A request counts once in each tier that it asks
        chart_index_cache_requests_total: Counter(
            chart_index_cache_group, chart_index_cache_tier, chart_index_outcome);
        /// Memory of the entries
        chart_index_cache_size_bytes: Gauge();
        /// `CACHE_BYTES`
        chart_index_cache_size_limit_bytes: Gauge();
        /// Entries in memory
        chart_index_cache_entries: Gauge();
        /// Entries that made room for others
        chart_index_cache_evictions_total: Counter();
        /// Fills: `found`, `not_found`, `error`, `timeout`
        chart_index_cache_fill_duration_seconds: Histogram<DATABASE_BUCKETS>(
            chart_index_cache_group, chart_index_outcome);
        /// Fills in flight: of lists and pages from PostgreSQL (`postgres_search`), of others (`search`), of
        /// all other responses (`store`)
        chart_index_cache_fills_in_flight: Gauge(chart_index_pool);
        /// Whether entries can be shown to be current: PostgreSQL was polled within 3 s
        chart_index_cache_confirmed: Gauge();
        /// Charts and chartsets whose last change is remembered, up to 131,072
        chart_index_cache_recent_changes: Gauge();
    }

    "Rate limits" {
        /// Requests that were `admitted` or `refused`
        chart_index_ratelimit_decisions_total: Counter(
            chart_index_group, chart_index_decision, chart_index_decider);
    }

    "PostgreSQL, Redis and Meilisearch" {
        /// Operations of `postgresql`, `redis`, `meilisearch` and `object_store`
        db_client_operation_duration_seconds: Histogram<DATABASE_BUCKETS>(
            db_system_name, db_operation_name, error_type);
        /// Connections to PostgreSQL that are `idle` or `used`
        db_client_connection_open: Gauge(db_client_connection_pool_name, db_client_connection_state);
        /// Maximum connections of the pool
        db_client_connection_max: Gauge(db_client_connection_pool_name);
        /// Time to get a connection from the pool
        db_client_connection_wait_time_seconds: Histogram<DATABASE_BUCKETS>(db_client_connection_pool_name);
        /// Attempts that timed out, as all do while PostgreSQL is unavailable
        db_client_connection_timeouts_total: Counter(db_client_connection_pool_name);
        /// Prepared statements that PostgreSQL no longer knows or can no longer run
        chart_index_postgresql_plan_errors_total: Counter();
        /// Whether the catalogue was polled within the last 5 s, on the primary
        chart_index_postgresql_available: Gauge();
        /// Whether reads use the standby
        chart_index_postgresql_standby_in_use: Gauge();
        /// Time since the last poll of the primary whose changes the standby has: at most 1 s without lag
        chart_index_postgresql_standby_lag_seconds: Gauge();
        /// Whether the connections are up, in a cluster to all primaries: `main` of all threads, `rox` for ROX
        /// files and previews, in a cluster `batches` for batches and writes
        chart_index_redis_connected: Gauge(chart_index_redis_connection);
    }

    "Search" {
        /// Searches that were run: `success`, `unavailable` (also one that takes longer than its request),
        /// `unsupported` (no usable node has `containsFilter` on), `error`
        chart_index_search_requests_total: Counter(chart_index_search_engine, chart_index_outcome);
        /// Responses to lists, cached or not, from the `primary` or the `fallback`
        chart_index_search_responses_total: Counter(chart_index_search_engine, chart_index_search_role);
        /// Whether the node can be searched
        chart_index_search_node_usable: Gauge(chart_index_search_node);
        /// Age of the oldest change that the node lacks, or 0. Absent while the node is unavailable or has no
        /// index. With changes that PostgreSQL lost it is the time since 1970
        chart_index_search_node_lag_seconds: Gauge(chart_index_search_node);
        /// Changes that the node lacks, counted up to 10,000. Absent like the lag
        chart_index_search_node_pending_changes: Gauge(chart_index_search_node);
    }

    "Indexer" {
        /// Changes that the node that lags most lacks, counted up to 10,000
        chart_index_sync_pending_changes: Gauge();
        /// Age of the oldest of them, or 0
        chart_index_sync_lag_seconds: Gauge();
        /// Passes: `success`, `error`
        chart_index_sync_pass_duration_seconds: Histogram<PASS_BUCKETS>(
            chart_index_search_node, chart_index_outcome);
        /// Documents of passes that succeeded: `put`, `delete`, `quarantine` (the node rejects it)
        chart_index_sync_documents_total: Counter(chart_index_search_node, chart_index_sync_action);
        /// Unix time of the last pass that succeeded
        chart_index_sync_last_success_seconds: Gauge(chart_index_search_node);
        /// Unix time at which the last ingest began, from `follow`
        chart_index_ingest_last_start_seconds: Gauge();
        /// Unix time at which an ingest was last complete, from `follow`; 0 before
        chart_index_ingest_last_success_seconds: Gauge();
        /// Chartsets of ingests: `added`, `updated`, `unchanged`, `refused`, `failed` (PostgreSQL rejected it)
        chart_index_ingest_chartsets_total: Counter(chart_index_outcome);
        /// Files and charts that were not indexed, by the kind of refusal
        chart_index_ingest_refusals_total: Counter(chart_index_reason);
        /// Age of the oldest change that a mirror has not applied, or 0
        chart_index_mirror_lag_seconds: Gauge();
        /// Last sequence of the mirrored index that is applied
        chart_index_mirror_sequence: Gauge();
        /// Changes of the mirrored index: `applied`, `refused`
        chart_index_mirror_changes_total: Counter(chart_index_outcome);
        /// Refused changes that are tried again
        chart_index_mirror_refusals: Gauge();
        /// Unix time at which changes of the mirrored index were last applied, or found to be applied
        chart_index_mirror_last_success_seconds: Gauge();
        /// Tags that `follow` has to purge from the CDN now
        chart_index_purge_pending_tags: Gauge();
        /// Time for which the first of them is late, or the change feed cannot be read; else 0
        chart_index_purge_lag_seconds: Gauge();
        /// Tags in purge requests: `success`, `error`. Each counts up to three times
        chart_index_purge_tags_total: Counter(chart_index_outcome);
    }

    "Process" {
        /// CPU time in `user` and `system` mode
        process_cpu_time_seconds_total: SecondsCounter(cpu_mode);
        /// Resident memory
        process_memory_usage_bytes: Gauge();
        /// The memory limit of the cgroup (version 1 or 2), or the memory of the machine
        process_memory_limit_bytes: Gauge();
        /// Open file descriptors
        process_file_descriptors_open: Gauge();
        /// Open file limit
        process_file_descriptors_limit: Gauge();
        /// Unix time of the start
        process_start_time_seconds: Gauge();
        /// Worker threads
        tokio_runtime_workers: Gauge(chart_index_runtime);
        /// Tasks that have not completed
        tokio_runtime_alive_tasks: Gauge(chart_index_runtime);
        /// Tasks that wait for a worker thread
        tokio_runtime_global_queue_depth: Gauge(chart_index_runtime);
        /// Time that worker threads were busy
        tokio_runtime_busy_time_seconds_total: SecondsCounter(chart_index_runtime);
        /// Items that were not delivered: spans of `traces`, lines of `logs`
        chart_index_telemetry_dropped_total: Counter(chart_index_signal);
        /// Always 1
        target_info: Gauge(service_name, service_version);
    }
}

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::default);

/// The metrics of this process.
#[must_use]
pub fn metrics() -> &'static Metrics {
    &METRICS
}

/// The metrics cannot be written as text.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the metrics")]
pub struct ScrapeError(#[from] prometheus::Error);

impl Metrics {
    /// The value of `Content-Type` for [`text`](Self::text).
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Sets gauges and counters from this source at each scrape, for as long as it exists. Gauges have no other
    /// values: what is not set at a scrape is not exported.
    pub fn observe<T: Send + Sync + 'static>(
        &self,
        source: &Arc<T>,
        read: impl Fn(&T, &Self) + Send + Sync + 'static,
    ) {
        let source = Arc::downgrade(source);
        self.add(Box::new(move |metrics| {
            let source = source.upgrade();
            if let Some(source) = &source {
                read(source, metrics);
            }
            source.is_some()
        }));
    }

    /// Like [`observe`](Self::observe), for as long as the process runs.
    pub fn observe_always(&self, read: impl Fn(&Self) + Send + Sync + 'static) {
        self.add(Box::new(move |metrics| {
            read(metrics);
            true
        }));
    }

    /// All series in the text format of Prometheus, with their current values.
    ///
    /// # Errors
    ///
    /// A metric has an invalid name, which is a bug.
    pub fn text(&self) -> Result<String, ScrapeError> {
        let mut observers = self.observers();
        self.clear(&["gauge"]);
        observers.retain(|observe| observe(self));
        let mut families = self.registry.gather();
        drop(observers);
        for metric in families.iter_mut().flat_map(MetricFamily::mut_metric) {
            let mut labels = metric.take_label();
            labels.retain(|label| !label.value().is_empty());
            metric.set_label(labels);
        }
        Ok(TextEncoder::new().encode_to_string(&families)?)
    }

    /// Removes all series and observers: a test starts with the metrics of a new process.
    pub fn reset(&self) {
        self.observers().clear();
        self.clear(&["counter", "gauge", "histogram"]);
    }

    fn add(&self, observer: Observer) {
        self.observers().push(observer);
    }

    fn observers(&self) -> MutexGuard<'_, Vec<Observer>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn samples(metrics: &Metrics) -> Vec<String> {
        let text = metrics.text().unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn series_have_the_labels_that_apply_and_the_buckets_of_their_row() {
        let metrics = Metrics::default();
        let wait = metrics.chart_index_cache_fill_duration_seconds.with(["lookup", ""]);
        wait.observe(0.1);
        wait.observe(60.0);
        let samples = samples(&metrics);
        let name = "chart_index_cache_fill_duration_seconds";
        for (sample, value) in [
            ("_bucket{chart_index_cache_group=\"lookup\",le=\"0.05\"}", "0"),
            ("_bucket{chart_index_cache_group=\"lookup\",le=\"0.1\"}", "1"),
            ("_bucket{chart_index_cache_group=\"lookup\",le=\"+Inf\"}", "2"),
            ("_sum{chart_index_cache_group=\"lookup\"}", "60.1"),
        ] {
            assert!(samples.contains(&format!("{name}{sample} {value}")), "{sample}: {samples:?}");
        }
        assert_eq!(samples.len(), DATABASE_BUCKETS.len() + 3);
    }

    #[test]
    fn help_and_kind_are_those_of_the_table() {
        let metrics = Metrics::default();
        metrics.observe_always(|metrics| metrics.chart_index_draining.set([], false));
        let text = metrics.text().unwrap();
        let expected = [
            "# HELP chart_index_draining Whether the process shuts down",
            "# TYPE chart_index_draining gauge",
            "chart_index_draining 0",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn values_are_read_at_a_scrape_while_their_source_exists() {
        let metrics = Metrics::default();
        let source = Arc::new(Mutex::new((Some(7_u64), Duration::from_millis(1_500))));
        metrics.observe(&source, |source, metrics| {
            let (pending, lag) = *source.lock().unwrap();
            metrics.chart_index_sync_pending_changes.set_known([], pending);
            metrics.chart_index_sync_lag_seconds.set([], lag);
            metrics.chart_index_cache_evictions_total.set([], 3);
        });
        let lag = "chart_index_sync_lag_seconds 1.5".to_owned();
        let (evictions, pending) =
            ("chart_index_cache_evictions_total 3", "chart_index_sync_pending_changes 7");
        for _ in 0..2 {
            assert_eq!(samples(&metrics), [evictions, &lag, pending]);
        }
        source.lock().unwrap().0 = None;
        assert_eq!(samples(&metrics), [evictions, &lag]);
        drop(source);
        assert_eq!(samples(&metrics), [evictions], "a counter does not disappear");
    }
}
