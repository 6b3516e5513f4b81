//! The Meilisearch engine: reads each page of a list from one of several nodes.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chart_index_domain::search::{
    CatalogueChanges, ChartsetPage, Engine, RatingHistogram, SearchIndex, SearchQuery,
};
use chart_index_domain::{Rating, ReadError};
use chart_index_instrumentation::metrics;
use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::page_search::{HistogramSearch, PageSearch};
use crate::search_node::{NodeSearch, SearchNode};
use crate::{SearchConfig, SearchError, UnsupportedQuery};

const OPERATION: &str = "search chartsets";

/// Searches the nodes. Clones share connections and probes, which end with the last clone.
///
/// Every page comes from a single node, and has the position of its index. Of the nodes that can be searched
/// the one with the least lag is, where a short lag counts as none. Among equals a process prefers the same
/// node, so that consecutive pages fit together; each process prefers a random one, so that replicas spread
/// over the nodes. A node is not searched while it is unavailable or busy, has no index or one of another
/// format, or lags behind the catalogue by more than the configured time.
///
/// A search fails with [`ReadError::Unavailable`] when no node can be searched, and with
/// [`ReadError::Unsupported`] and an [`UnsupportedQuery`] as its source for the few queries that Meilisearch
/// cannot run exactly: the PostgreSQL engine can.
#[derive(Clone)]
pub struct MeilisearchEngine {
    shared: Arc<SharedEngine>,
    _probes: Arc<[AbortOnDropHandle<()>]>,
}

struct SharedEngine {
    config: SearchConfig,
    /// In the order of preference of this process.
    nodes: Vec<SearchNode>,
    changes: Arc<dyn CatalogueChanges>,
}

impl MeilisearchEngine {
    /// An engine that has probed each node once, and probes it again in every interval. A node that is
    /// unavailable is used as soon as a probe succeeds.
    ///
    /// # Errors
    /// When the configuration is invalid. Unavailable nodes are not an error.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub async fn connect(
        config: SearchConfig,
        changes: Arc<dyn CatalogueChanges>,
    ) -> Result<Self, SearchError> {
        let nodes: Result<Vec<SearchNode>, _> =
            config.nodes.iter().map(|node| SearchNode::new(node, &config)).collect();
        let mut nodes = nodes?;
        if nodes.is_empty() {
            return Err(SearchError::Configuration("no Meilisearch nodes are configured"));
        }
        let first = fastrand::usize(..nodes.len());
        nodes.rotate_left(first);
        let shared = Arc::new(SharedEngine { config, nodes, changes });
        metrics().observe(&shared, |shared, metrics| {
            shared.nodes.iter().for_each(|node| node.report(metrics));
        });
        join_all((0..shared.nodes.len()).map(|node| shared.probe(node))).await;
        let probes = (0..shared.nodes.len())
            .map(|node| AbortOnDropHandle::new(tokio::spawn(probe_repeatedly(Arc::clone(&shared), node))));
        Ok(Self { _probes: probes.collect(), shared })
    }
}

async fn probe_repeatedly(shared: Arc<SharedEngine>, node: usize) {
    let interval = shared.config.probe_interval;
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.probe(node).await;
    }
}

impl SharedEngine {
    async fn probe(&self, node: usize) {
        self.nodes[node].probe(self.changes.as_ref(), self.config.max_lag).await;
    }

    /// The nodes that can be searched, in order of preference.
    fn usable(&self) -> impl Iterator<Item = &SearchNode> {
        let now = Instant::now();
        let usable = self.nodes.iter().filter_map(|node| Some((node.health().usable_lag(now)?, node)));
        let mut usable: Vec<_> = usable.collect();
        usable.sort_by_key(|(lag, _)| *lag);
        usable.into_iter().map(|(_, node)| node)
    }

    /// Searches the preferred node, or the next one if the connection fails or the index was replaced. After
    /// any other error no second node is searched: if one is busy or slow, the others must not get its load as
    /// well.
    async fn search<S: NodeSearch>(&self, search: &S) -> Result<S::Found, ReadError> {
        let deadline = Instant::now() + self.config.search_timeout;
        let mut failure: ReadError = unavailable(SearchError::NoUsableNode);
        for node in self.usable() {
            if search.needs_contains_filter() && !node.health().accepts_contains_filter() {
                failure = unsupported(UnsupportedQuery::ContainsFilterOff);
                continue;
            }
            match node.search(search, deadline).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    let ends = !error.permits_another_node();
                    failure = unavailable(error);
                    if ends {
                        break;
                    }
                }
            }
        }
        Err(failure)
    }
}

#[async_trait]
impl SearchIndex for MeilisearchEngine {
    fn engine(&self) -> Engine {
        Engine::Meilisearch
    }

    fn is_available(&self) -> bool {
        let now = Instant::now();
        self.shared.nodes.iter().any(|node| node.health().usable_lag(now).is_some())
    }

    fn supports(&self, query: &SearchQuery) -> bool {
        query.matches_nothing() || PageSearch::new(query).is_ok()
    }

    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        if query.matches_nothing() {
            // For a text without words Meilisearch would list everything.
            return Ok(ChartsetPage { items: Vec::new(), total: 0, next: None, position: None });
        }
        let search = PageSearch::new(query).map_err(unsupported)?;
        self.shared.search(&search).await
    }

    async fn rating_histogram(&self, query: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        if query.matches_nothing() {
            return Ok(RatingHistogram { chartsets: [0; Rating::BINS], position: None });
        }
        // With another condition for one chart it is not supported: the rating may be that of another chart.
        let query = query.rated();
        let search = PageSearch::new(&query).map_err(unsupported)?;
        self.shared.search(&HistogramSearch(search)).await
    }
}

impl fmt::Debug for MeilisearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeilisearchEngine").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

fn unavailable(error: SearchError) -> ReadError {
    ReadError::Unavailable { operation: OPERATION, source: error.into() }
}

fn unsupported(query: UnsupportedQuery) -> ReadError {
    ReadError::Unsupported { operation: OPERATION, source: query.into() }
}
