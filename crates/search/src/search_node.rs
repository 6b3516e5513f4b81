//! [`SearchNode`]: searches one node, within a concurrency limit, and probes its health.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chart_index_domain::Position;
use chart_index_domain::search::CatalogueChanges;
use chart_index_instrumentation::Metrics;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::node::Node;
use crate::node_health::{NodeHealth, ProbeResult};
use crate::transport::TransportError;
use crate::{Lag, NodeConfig, SearchConfig, SearchError, Target};

/// What nodes are searched for.
pub(crate) trait NodeSearch: Sync {
    type Found: Send;

    /// Whether it requires the feature `containsFilter`.
    fn needs_contains_filter(&self) -> bool;

    /// Runs the search on one node: two nodes may have different states. What it finds has the position that is
    /// stored in the node.
    fn run(
        &self,
        node: &Node,
        reverse_from_offset: u64,
    ) -> impl Future<Output = Result<Self::Found, SearchError>> + Send;

    /// The position of what was found.
    fn position(found: &mut Self::Found) -> &mut Option<Position>;
}

/// A node that is searched: its connection, its concurrency limit and its health.
#[derive(Debug)]
pub(crate) struct SearchNode {
    node: Node,
    permits: Semaphore,
    search_timeout: Duration,
    reverse_from_offset: u64,
    health: Mutex<NodeHealth>,
    /// Its host and port, without a path.
    address: String,
}

impl SearchNode {
    pub(crate) fn new(node: &NodeConfig, config: &SearchConfig) -> Result<Self, SearchError> {
        Ok(Self {
            node: Node::new(node, config.search_timeout)?,
            permits: Semaphore::new(config.max_concurrent_searches.get()),
            search_timeout: config.search_timeout,
            reverse_from_offset: config.reverse_from_offset,
            health: Mutex::default(),
            address: node.url.address().to_owned(),
        })
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn health(&self) -> NodeHealth {
        *self.lock()
    }

    /// Reports the node at a scrape, by its host and port.
    pub(crate) fn report(&self, metrics: &Metrics) {
        let (node, health) = ([self.address.as_str()], self.health());
        let lag = health.lag();
        metrics.chart_index_search_node_usable.set(node, health.usable_lag(Instant::now()).is_some());
        metrics.chart_index_search_node_lag_seconds.set_known(node, lag.map(|lag| lag.age()));
        let pending = lag.map(|lag| lag.unapplied.count);
        metrics.chart_index_search_node_pending_changes.set_known(node, pending);
    }

    /// Runs a search and records its outcome. What it finds has a position in terms of the server that the
    /// changes are read from. A search that times out is no failure of the node if it waited longer for a
    /// permit than for the node.
    pub(crate) async fn search<S: NodeSearch>(
        &self,
        search: &S,
        deadline: Instant,
    ) -> Result<S::Found, SearchError> {
        let start = Instant::now();
        let permit =
            timeout_at(deadline, self.permits.acquire()).await.map_err(|_| SearchError::AtCapacity)?;
        let _permit = permit.map_err(|_| SearchError::AtCapacity)?;
        let (waited, search_start) = (start.elapsed(), Instant::now());
        let probe = self.health().last_probe();
        let search = search.run(&self.node, self.reverse_from_offset);
        let result = match timeout_at(deadline, search).await {
            Ok(Ok(mut found)) => {
                let position = S::position(&mut found);
                *position = position.and_then(|stored| probe?.page_position(stored));
                if position.is_some() { Ok(found) } else { Err(SearchError::IndexReplaced) }
            }
            Ok(Err(error)) => Err(error),
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
        let was_usable = health.usable_lag(now).is_some();
        health.record_search_failure(error, now);
        let is_usable = health.usable_lag(now).is_some();
        drop(health);
        if was_usable && !is_usable {
            let error: &dyn std::error::Error = error;
            tracing::warn!(node = %self.node.config.url, error, "search node temporarily out of use");
        }
    }

    /// Probes the node and records its health. Ends in bounded time, even if connections to the node or to
    /// PostgreSQL go silent.
    pub(crate) async fn probe(&self, changes: &dyn CatalogueChanges, max_lag: Duration) {
        let before = self.health();
        match self.probe_result(changes, max_lag, before.last_probe()).await {
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

    /// What the node responds to a probe.
    pub(crate) async fn probe_result(
        &self,
        changes: &dyn CatalogueChanges,
        max_lag: Duration,
        before: Option<ProbeResult>,
    ) -> Result<ProbeResult, SearchError> {
        let features = self.node.read_features().await?;
        let contains_filter = features.map(|features| features.get("containsFilter") == Some(&true));
        let position = self.node.read_position(Target::Live).await?;
        let unknown = ProbeResult { position, lag: None, lags: false, contains_filter };
        let Some(read_position) = position else { return Ok(unknown) };
        let lag = Lag::read(changes, read_position, before.and_then(|before| before.lag));
        Ok(match (timeout(self.search_timeout, lag).await, before) {
            (Ok(Ok(lag)), _) => ProbeResult { lag: Some(lag), lags: lag.age() > max_lag, ..unknown },
            // PostgreSQL is unavailable: assume that nothing has changed since the last probe.
            (_, Some(before)) => ProbeResult { position, contains_filter, ..before },
            (_, None) => unknown,
        })
    }

    /// Logs when the node comes into use or goes out of use, and at the first probe why it is not in use.
    fn log_change(&self, before: NodeHealth, problem: Option<&'static str>, error: Option<&SearchError>) {
        let (now, after) = (Instant::now(), self.health());
        let (node, was_usable) = (&self.node.config.url, before.usable_lag(now).is_some());
        if after.hides_features() && !before.hides_features() {
            tracing::warn!(%node, "the API key may not read the experimental features of a search node");
        }
        let error = error.map(|error| error as &dyn std::error::Error);
        match problem {
            None if !was_usable && after.usable_lag(now).is_some() => {
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
