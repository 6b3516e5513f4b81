//! The public interface of the cache.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chart_index_domain::ReadError;

use crate::metrics::Observed;
use crate::read_through::ReadThrough;
use crate::{
    CacheConfig, CacheConnections, CacheKey, CacheStats, CachedBody, CachedResponse, FillError, Filled, Kind,
    MemoryLookup, Representation, metrics,
};

/// A read-through cache of responses in front of the store.
///
/// Clones share everything.
#[derive(Clone)]
pub struct Cache {
    pub(crate) inner: Arc<ReadThrough>,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(config: CacheConfig, connections: CacheConnections) -> Self {
        let inner = Arc::new(ReadThrough::new(config, connections));
        metrics::observe(&inner);
        Self { inner }
    }

    /// Returns the response from memory, from Redis, or from the fill.
    ///
    /// The fill continues in a task of its own when this future is dropped, and its response is cached.
    /// Concurrent requests for the key share its outcome, including an error; the next request after an error
    /// tries again. If the fill fails, or more fills are in flight than [`CacheConfig::max_fills`], an older
    /// response is returned if there is one.
    pub async fn get_or_fill<F, Fut, R>(&self, key: CacheKey, fill: F) -> Result<CachedResponse, FillError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        let connection = self.inner.redis.connection(Kind::Lookup);
        self.get_or_fill_if_admitted(key, connection, ready(Ok(())), fill).await
    }

    /// Looks in memory only, without waiting.
    #[must_use]
    pub fn get_from_memory(&self, key: &CacheKey) -> MemoryLookup {
        self.inner.get(key)
    }

    /// The response in memory that may be served because the store does not respond, however stale.
    #[must_use]
    pub fn get_older(&self, key: &CacheKey) -> Option<CachedResponse> {
        self.inner.fallback(key)
    }

    /// The gzip representation of a body from this cache. `compress` is called when it is first needed; the
    /// result is cached with the body. `None` if `compress` returns that.
    ///
    /// Only memory holds compressed bodies (decision 0029).
    pub fn gzip<'body>(
        &self,
        key: &CacheKey,
        body: &'body CachedBody,
        compress: impl FnOnce(&Bytes) -> Option<Representation>,
    ) -> Option<&'body Representation> {
        let mut is_new = false;
        let gzip = body.gzip_or_compress(|plain| {
            is_new = true;
            compress(plain)
        });
        if is_new && gzip.is_some() {
            self.inner.update_size(key, body);
        }
        gzip
    }

    /// The time since the response in memory was read, if it has to be read again before it is served: a
    /// request that got it nevertheless got it because the store did not respond.
    #[must_use]
    pub fn age(&self, key: &CacheKey) -> Option<Duration> {
        self.inner.age(key)
    }

    /// Counters since the start, and the current state.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.inner.stats()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("stats", &self.inner.stats()).finish_non_exhaustive()
    }
}
