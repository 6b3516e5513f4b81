//! What the metrics of the replicas say during a history: what they decide without Redis, and how far search
//! nodes lag behind. On a busy machine both happen without a fault.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;

use super::{Clients, TIMEOUT};
use crate::model::Moment;

/// What the metrics of a replica said at some moment between two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation {
    pub(crate) replica: usize,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    /// Lookups of all clients that it has admitted without Redis since its start.
    pub(crate) local_admissions: u64,
    /// How far the search nodes that it may use lag behind at most.
    pub(crate) search_lag: Duration,
}

const INTERVAL: Duration = Duration::from_millis(250);
/// `SEARCH_MAX_LAG_MS`: nodes that lag more are not used.
const MAX_SEARCH_LAG_SECONDS: f64 = 30.0;

impl Clients {
    pub(super) async fn observe_until_stopped(self: Arc<Self>) {
        while !self.is_stopped() {
            self.observe().await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Records the metrics of the replicas that respond.
    pub(crate) async fn observe(&self) {
        for (replica, admin) in self.admin.iter().enumerate() {
            let start = self.start.elapsed();
            let request = admin.try_request(Method::GET, "/metrics", &[]);
            let Ok(Ok(response)) = tokio::time::timeout(TIMEOUT, request).await else { continue };
            let metrics = String::from_utf8_lossy(&response.body);
            let observation = Observation {
                replica,
                start,
                end: self.start.elapsed(),
                local_admissions: local_admissions(&metrics),
                search_lag: search_lag(&metrics),
            };
            self.recorded().observations.push(observation);
        }
    }
}

fn local_admissions(metrics: &str) -> u64 {
    const LABELS: [&str; 3] = [
        "chart_index_group=\"lookup\"",
        "chart_index_decision=\"admitted\"",
        "chart_index_decider=\"local\"",
    ];
    let mut series = series(metrics, "chart_index_ratelimit_decisions_total");
    let of_lookups = series.find(|(labels, _)| LABELS.iter().all(|label| labels.contains(label)));
    of_lookups.expect("a series").1.parse().expect("a count")
}

fn search_lag(metrics: &str) -> Duration {
    let lags = series(metrics, "chart_index_search_node_lag_seconds");
    let lags = lags.map(|(_, value)| value.parse().expect("seconds"));
    let used = lags.filter(|lag| *lag <= MAX_SEARCH_LAG_SECONDS);
    Duration::from_secs_f64(used.fold(0.0, f64::max))
}

/// The labels and values of a metric of docs/operations/metrics.md.
fn series<'a>(metrics: &'a str, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    metrics.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once(' '))
}
