//! The Meilisearch engine: several nodes, each with a whole copy of the catalogue, one of them for each page.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{
    CatalogueChanges, ChartsetPage, Checkpoint, Engine, Generation, SearchIndex, SearchQuery,
};
use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::reader::Reader;
use crate::request::PageSearch;
use crate::{SearchConfig, SearchError, Unanswerable};

/// Searches the nodes. Clones share everything; what watches the nodes ends with the last one.
///
/// Every page comes from one node alone: the same one while it can be used, so that what a visitor sees does not
/// flicker, and another one for every process, so that replicas spread over the nodes. A node is not asked while
/// it is away or busy, has no index or one of another format, or lags behind the catalogue by more than the
/// configured time.
///
/// Beside outages, [`ReadError::Unavailable`] with an [`Unanswerable`] inside is the answer to the few queries that
/// Meilisearch has no exact answer to; the exact engine has to be asked then.
#[derive(Clone)]
pub struct MeilisearchEngine {
    shared: Arc<Shared>,
    _monitors: Arc<[AbortOnDropHandle<()>]>,
}

struct Shared {
    config: SearchConfig,
    /// In the order in which this process asks.
    readers: Vec<Reader>,
    /// The newest checkpoint that was given out as a generation. It never goes back, whichever node is asked.
    newest: AtomicU64,
    changes: Arc<dyn CatalogueChanges>,
}

impl MeilisearchEngine {
    /// An engine over those nodes. Asks each of them how it is, and again in every interval; nodes that are away come
    /// in when they are back.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub async fn connect(
        config: SearchConfig,
        changes: Arc<dyn CatalogueChanges>,
    ) -> Result<Self, SearchError> {
        let readers: Result<Vec<Reader>, _> =
            config.nodes.iter().map(|node| Reader::new(node, &config)).collect();
        let mut readers = readers?;
        if readers.is_empty() {
            return Err(SearchError::Configuration("there is no Meilisearch node to search"));
        }
        let first = fastrand::usize(..readers.len());
        readers.rotate_left(first);
        let shared = Arc::new(Shared { config, readers, newest: AtomicU64::new(0), changes });
        join_all((0..shared.readers.len()).map(|reader| shared.probe(reader))).await;
        let monitors = (0..shared.readers.len())
            .map(|reader| AbortOnDropHandle::new(tokio::spawn(monitor(Arc::clone(&shared), reader))));
        Ok(Self { _monitors: monitors.collect(), shared })
    }
}

async fn monitor(shared: Arc<Shared>, reader: usize) {
    let interval = shared.config.interval;
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.probe(reader).await;
    }
}

impl Shared {
    async fn probe(&self, reader: usize) {
        let newest = Checkpoint(self.newest.load(Ordering::Acquire));
        self.readers[reader].probe(self.changes.as_ref(), self.config.max_lag, newest).await;
    }

    /// The nodes that may be asked for that generation, the first one first.
    fn usable(&self, generation: Generation) -> impl Iterator<Item = (&Reader, Checkpoint)> {
        let now = Instant::now();
        let usable =
            self.readers.iter().filter_map(move |reader| Some((reader, reader.standing().usable(now)?)));
        usable.filter(move |(_, checkpoint)| checkpoint.0 >= generation.0)
    }

    /// One page from one node. Another node is asked only when this one broke the connection: what is busy or slow
    /// must not be answered with more work.
    async fn search(
        &self,
        search: &PageSearch<'_>,
        generation: Generation,
    ) -> Result<ChartsetPage, ReadError> {
        let deadline = Instant::now() + self.config.deadline;
        let mut failure: ReadError = unavailable(SearchError::NoNode);
        for (reader, _) in self.usable(generation) {
            if search.needs_contains() && !reader.standing().contains() {
                failure = unavailable(Unanswerable::NoContains);
                continue;
            }
            match reader.search(search, deadline).await {
                Ok(page) => return Ok(page),
                Err(error) => {
                    let broke = error.is_broken_connection();
                    failure = unavailable(error);
                    if !broke {
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

    /// The checkpoint of the node that would be asked now. While none can be asked it stays what it was.
    fn generation(&self) -> Generation {
        let newest = Generation(self.shared.newest.load(Ordering::Acquire));
        match self.shared.usable(newest).next() {
            Some((_, Checkpoint(checkpoint))) => {
                Generation(self.shared.newest.fetch_max(checkpoint, Ordering::AcqRel).max(checkpoint))
            }
            None => newest,
        }
    }

    async fn search(&self, query: &SearchQuery, generation: Generation) -> Result<ChartsetPage, ReadError> {
        if query.matches_nothing() {
            // No node has to be asked. Without words, Meilisearch would list everything.
            return Ok(ChartsetPage { items: Vec::new(), total: 0 });
        }
        let search = PageSearch::of(query).map_err(unavailable)?;
        self.shared.search(&search, generation).await
    }
}

impl fmt::Debug for MeilisearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeilisearchEngine").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> ReadError {
    ReadError::Unavailable { operation: "search chartsets", source: error.into() }
}
