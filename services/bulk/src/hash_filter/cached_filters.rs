//! The hash filters in memory.
//!
//! Not in the response cache: a filter has a megabyte for each million charts, is immutable, and there are two
//! at most.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chart_index_domain::ReadError;
use chart_index_http::{ApiError, EntityTag};
use chart_index_store::Store;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

/// How long the sequence of the last filter is used before it is read again. A replica may read a standby for
/// three seconds after it stops to replay, and shows changes within five.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Number of filters in memory: as many as are stored.
const FILTERS: usize = 2;

#[derive(Debug, Clone)]
pub(super) struct CachedFilter {
    sequence: u64,
    pub(super) tag: EntityTag,
    pub(super) bytes: Bytes,
}

/// Reads filters. Requests for one that is not in memory wait for one read.
#[derive(Debug)]
pub(super) struct CachedFilters {
    store: Store,
    /// The connections to PostgreSQL belong to this runtime.
    background: Handle,
    latest: Mutex<Option<(u64, Instant)>>,
    filters: std::sync::Mutex<VecDeque<CachedFilter>>,
    /// Held while a filter is read, so that a request for one in memory does not wait for PostgreSQL.
    reading: Mutex<()>,
}

impl CachedFilters {
    pub(super) fn new(store: Store, background: Handle) -> Self {
        let (latest, filters, reading) = Default::default();
        Self { store, background, latest, filters, reading }
    }

    /// Returns the sequence of the last filter, if one is built. While PostgreSQL is unavailable, that is the
    /// last sequence that was read.
    pub(super) async fn read_latest(&self) -> Result<Option<u64>, ApiError> {
        let mut latest = self.latest.lock().await;
        if let Some((sequence, read_at)) = *latest
            && read_at.elapsed() < MAX_AGE
        {
            return Ok(Some(sequence));
        }
        let store = self.store.clone();
        match (self.read(async move { store.last_hash_filter().await }).await, *latest) {
            (Ok(read), _) => {
                *latest = read.map(|sequence| (sequence, Instant::now()));
                Ok(read)
            }
            (Err(_), Some((sequence, _))) => {
                // So that the other requests do not each wait for an attempt.
                *latest = Some((sequence, Instant::now()));
                Ok(Some(sequence))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the filter of a sequence, from memory or from PostgreSQL, if it is stored.
    pub(super) async fn get(&self, sequence: u64) -> Result<Option<CachedFilter>, ApiError> {
        if let Some(filter) = self.in_memory(sequence) {
            return Ok(Some(filter));
        }
        let _reading = self.reading.lock().await;
        if let Some(filter) = self.in_memory(sequence) {
            return Ok(Some(filter));
        }
        let store = self.store.clone();
        let read = async move {
            let bytes = store.hash_filter(sequence).await?;
            let tagged = |bytes: Vec<u8>| (EntityTag::from_content(&bytes), bytes.into());
            Ok(bytes.map(tagged))
        };
        let Some((tag, bytes)) = self.read(read).await? else { return Ok(None) };
        let filter = CachedFilter { sequence, tag, bytes };
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        filters.push_front(filter.clone());
        filters.truncate(FILTERS);
        Ok(Some(filter))
    }

    fn in_memory(&self, sequence: u64) -> Option<CachedFilter> {
        let filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        filters.iter().find(|filter| filter.sequence == sequence).cloned()
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl Future<Output = Result<T, ReadError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let task = AbortOnDropHandle::new(self.background.spawn(read));
        Ok(task.await.map_err(|error| ApiError::Internal(error.into()))??)
    }
}
