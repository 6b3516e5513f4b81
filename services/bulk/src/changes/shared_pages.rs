//! Pages that the mirrors share whose waits have ended.

use std::time::Instant;

use chart_index_domain::Lineage;
use chart_index_http::ApiError;
use chart_index_store::Store;
use quick_cache::sync::Cache;
use tokio::sync::watch;

use super::page_request::FeedPageRequest;
use super::{FeedPageBody, LongPolls, read_page};

/// Almost all mirrors have applied the same changes. A page has at most about 4 MiB.
const PAGES: usize = 4;

/// A page is shared for a second, and until the replica knows of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PageKey {
    after: u64,
    lineage: Option<Lineage>,
    limit: u32,
    sequence: u64,
    second: u64,
}

#[derive(Debug)]
pub(crate) struct SharedPages {
    pages: Cache<PageKey, FeedPageBody>,
    sequence: watch::Receiver<u64>,
    start: Instant,
}

impl SharedPages {
    pub(crate) fn new(long_polls: &LongPolls) -> Self {
        Self { pages: Cache::new(PAGES), sequence: long_polls.sequence.clone(), start: Instant::now() }
    }

    /// A page in memory.
    pub(super) fn get(&self, request: FeedPageRequest) -> Option<FeedPageBody> {
        self.pages.get(&self.key(request))
    }

    /// Reads a page. Concurrent requests wait for one read.
    ///
    /// # Errors
    /// The page cannot be read. A request that has waited for it tries it itself.
    pub(super) async fn read(
        &self,
        store: &Store,
        request: FeedPageRequest,
    ) -> Result<FeedPageBody, ApiError> {
        self.pages.get_or_insert_async(&self.key(request), read_page(store, request)).await
    }

    fn key(&self, FeedPageRequest { after, lineage, limit, .. }: FeedPageRequest) -> PageKey {
        let (sequence, second) = (*self.sequence.borrow(), self.start.elapsed().as_secs());
        PageKey { after, lineage, limit, sequence, second }
    }
}
