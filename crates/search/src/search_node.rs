//! [`SearchNode`]: searches one node, within a concurrency limit, and probes its health.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chart_index_domain::search::{CatalogueChanges, ChartsetPage, Checkpoint};
use opentelemetry::KeyValue;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::metrics::NodeObservation;
use crate::node::Node;
use crate::node_health::{NodeHealth, ProbeResult};
use crate::page_search::PageSearch;
use crate::transport::TransportError;
use crate::{NodeConfig, SearchConfig, SearchError, Target, metrics};

/// A node that is searched: its connection, its concurrency limit and its health.
#[derive(Debug)]
pub(crate) struct SearchNode {
    node: Node,
    permits: Semaphore,
    search_timeout: Duration,
    reverse_from_offset: u64,
    health: Mutex<NodeHealth>,
    /// The label of the node in metrics.
    label: KeyValue,
}

impl SearchNode {
    pub(crate) fn new(node: &NodeConfig, config: &SearchConfig) -> Result<Self, SearchError> {
        Ok(Self {
            node: Node::new(node, config.search_timeout)?,
            permits: Semaphore::new(config.max_concurrent_searches.get()),
            search_timeout: config.search_timeout,
            reverse_from_offset: config.reverse_from_offset,
            health: Mutex::default(),
            label: metrics::node_label(&node.url),
        })
    }

    pub(crate) fn health(&self) -> NodeHealth {
        *self.lock()
    }

    /// What the metrics report of the node.
    pub(crate) fn observation(&self) -> NodeObservation {
        let health = self.health();
        let unapplied = health.unapplied();
        NodeObservation {
            label: self.label.clone(),
            is_usable: health.usable_checkpoint(Instant::now()).is_some(),
            lag: unapplied.map(|changes| changes.oldest_ms.map_or(Duration::ZERO, age)),
            pending_changes: unapplied.map(|changes| changes.count),
        }
    }

    /// Runs a search and records its outcome. A search that times out is no failure of the node if it waited
    /// longer for a permit than for the node.
    pub(crate) async fn search(
        &self,
        search: &PageSearch<'_>,
        deadline: Instant,
    ) -> Result<ChartsetPage, SearchError> {
        let start = Instant::now();
        let permit =
            timeout_at(deadline, self.permits.acquire()).await.map_err(|_| SearchError::AtCapacity)?;
        let _permit = permit.map_err(|_| SearchError::AtCapacity)?;
        let (waited, search_start) = (start.elapsed(), Instant::now());
        let search = search.run(&self.node, self.reverse_from_offset);
        let result = match timeout_at(deadline, search).await {
            Ok(result) => result,
            Err(_) if waited > search_start.elapsed() => return Err(SearchError::AtCapacity),
            Err(_) => {
                self.node.transport.discard_connections();
                let source = TransportError::TimedOut(self.search_timeout).into();
                Err(SearchError::Unreachable { operation: "search chartsets", source })
            }
        };
        match &result {
            Ok(_) => self.lock().record_search(),
            Err(error) => self.record_failure(error),
        }
        result
    }

    /// Records a failed search. Logs only when it makes the node unusable: the caller reports the failure
    /// itself.
    fn record_failure(&self, error: &SearchError) {
        let now = Instant::now();
        let mut health = self.lock();
        let was_usable = health.usable_checkpoint(now).is_some();
        health.record_search_failure(error, now);
        let is_usable = health.usable_checkpoint(now).is_some();
        drop(health);
        if was_usable && !is_usable {
            let error: &dyn std::error::Error = error;
            tracing::warn!(node = %self.node.config.url, error, "search node temporarily out of use");
        }
    }

    /// Probes the node and records its health. `newest` is the newest checkpoint that was returned as a
    /// generation. Ends in bounded time, even if connections to the node or to PostgreSQL go silent.
    pub(crate) async fn probe(&self, changes: &dyn CatalogueChanges, max_lag: Duration, newest: Checkpoint) {
        let before = self.health();
        match self.probe_result(changes, max_lag, newest).await {
            Ok(probe) => {
                self.lock().record_probe(probe);
                self.log_change(before, probe.problem(), None);
            }
            Err(error) => {
                self.lock().record_probe_failure();
                self.log_change(before, Some("probe failed"), Some(&error));
            }
        }
    }

    async fn probe_result(
        &self,
        changes: &dyn CatalogueChanges,
        max_lag: Duration,
        newest: Checkpoint,
    ) -> Result<ProbeResult, SearchError> {
        let features = self.node.read_features().await?;
        let contains_filter = features.map(|features| features.get("containsFilter") == Some(&true));
        let Some(mut state) = self.node.read_state(Target::Live).await? else {
            return Ok(ProbeResult { state: None, unapplied: None, lags: false, contains_filter });
        };
        let unapplied = timeout(self.search_timeout, changes.unapplied(state.recorded())).await;
        // PostgreSQL is unavailable: assume that nothing has changed since the last probe.
        let Ok(Ok(unapplied)) = unapplied else {
            let before = self.health();
            let (unapplied, lags) = (before.unapplied(), before.lags());
            return Ok(ProbeResult { state: Some(state), unapplied, lags, contains_filter });
        };
        if unapplied.oldest_ms.is_none() {
            // The node has applied all changes, so it is at least as new as any checkpoint that was returned.
            state.checkpoint = state.checkpoint.max(newest);
        }
        let lags = unapplied.oldest_ms.is_some_and(|changed_at_ms| age(changed_at_ms) > max_lag);
        Ok(ProbeResult { state: Some(state), unapplied: Some(unapplied), lags, contains_filter })
    }

    /// Logs when the node comes into use or goes out of use, and at the first probe why it is not in use.
    fn log_change(&self, before: NodeHealth, problem: Option<&'static str>, error: Option<&SearchError>) {
        let (now, after) = (Instant::now(), self.health());
        let (node, was_usable) = (&self.node.config.url, before.usable_checkpoint(now).is_some());
        if after.hides_features() && !before.hides_features() {
            tracing::warn!(%node, "the API key may not read the experimental features of a search node");
        }
        let error = error.map(|error| error as &dyn std::error::Error);
        match problem {
            None if !was_usable && after.usable_checkpoint(now).is_some() => {
                tracing::info!(%node, "search node in use");
            }
            Some(reason) if was_usable || before.is_unknown() => {
                tracing::warn!(%node, reason, error, "search node out of use");
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, NodeHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The age of an instant in Unix epoch milliseconds; zero if it is in the future of this clock.
fn age(at_ms: i64) -> Duration {
    let at = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(at)
}
