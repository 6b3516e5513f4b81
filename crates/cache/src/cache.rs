//! The cache, as its users see it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use chart_index_redis::RedisConnection;
use redis::RedisError;
use tokio_util::task::AbortOnDropHandle;

use crate::inner::{Inner, Source};
use crate::{CacheConfig, CacheKey, CachedBody, CachedResponse, FillError, Representation, feed};

/// The ways to Redis that the cache takes.
#[derive(Debug, Clone)]
pub struct CacheConnections {
    /// For small answers: the connection of the limiter, so that a limit and an answer travel together.
    pub main: RedisConnection,
    /// For ROX files.
    pub rox: RedisConnection,
}

impl CacheConnections {
    /// No Redis: memory and the store alone.
    #[must_use]
    pub fn disabled() -> Self {
        Self { main: RedisConnection::disabled(), rox: RedisConnection::disabled() }
    }
}

/// Finished answers in front of the store. Clones share everything; `E` is the error of a fill.
pub struct Cache<E> {
    pub(crate) inner: Arc<Inner<E>>,
    /// Ends with the last clone.
    feed: Option<Arc<AbortOnDropHandle<()>>>,
}

/// What memory says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The answer.
    Fresh(CachedResponse),
    /// The answer, for now: it is to be looked behind, see [`Cache::refresh_in_background`].
    Stale(CachedResponse),
    /// Redis and the store are to be asked.
    Miss,
}

/// What the cache did since the start, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Answers from memory, fresh or stale.
    pub from_memory: u64,
    /// Records found in Redis.
    pub from_redis: u64,
    /// Reads of the store.
    pub fills: u64,
    /// Reads of the store that failed.
    pub failed_fills: u64,
    /// Fills that were not started, and requests that did not wait for one, because too many are in flight.
    pub shed: u64,
    /// Answers of fills that Redis was not given, because too many were on their way to it.
    pub dropped_writes: u64,
    /// The bytes of memory in use.
    pub bytes: u64,
    /// The answers with a body in memory.
    pub found_entries: usize,
    /// The keys in memory that are known not to be found.
    pub not_found_entries: usize,
}

impl<E: Send + Sync + 'static> Cache<E> {
    /// An empty cache over these connections, which begins to listen for invalidations.
    ///
    /// # Errors
    ///
    /// Where the nodes of the feed cannot be used at all, e.g. for a certificate that does not parse.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, if the feed has nodes.
    pub fn new(config: CacheConfig, connections: CacheConnections) -> Result<Self, RedisError> {
        let nodes = config.invalidations.node_clients()?;
        let channel = feed::channel(&config.key_prefix);
        let feed_config = config.invalidations.clone();
        let inner = Arc::new(Inner::new(config, connections));
        let feed = (!nodes.is_empty()).then(|| {
            let task = tokio::spawn(feed::follow(Arc::clone(&inner), nodes, feed_config, channel));
            Arc::new(AbortOnDropHandle::new(task))
        });
        Ok(Self { inner, feed })
    }

    /// Reads an answer: from memory, from Redis, or with the fill from the store.
    ///
    /// The fill goes on in a task of its own when this future is dropped, and what it brings is kept. All
    /// that ask for the same key meanwhile share its outcome, also its error; then the next request tries again.
    /// While the store fails, or more fills are in flight than [`CacheConfig::max_fills`], an older answer is given if
    /// there is one.
    pub async fn get_or_fill<F, Fut>(&self, key: CacheKey, fill: F) -> Result<CachedResponse, FillError<E>>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        self.read_from(Source::RedisThenStore, key, fill).await
    }

    /// Reads an answer from memory, or with the fill from the store, as [`read`](Self::read) does but without asking
    /// Redis: for a request that has asked it once already.
    pub async fn get_or_fill_without_redis<F, Fut>(
        &self,
        key: CacheKey,
        fill: F,
    ) -> Result<CachedResponse, FillError<E>>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        self.read_from(Source::Store, key, fill).await
    }

    async fn read_from<F, Fut>(
        &self,
        source: Source,
        key: CacheKey,
        fill: F,
    ) -> Result<CachedResponse, FillError<E>>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        match self.get(&key) {
            Lookup::Fresh(answer) => Ok(answer),
            Lookup::Stale(answer) => {
                self.inner.refresh(key, source, fill);
                Ok(answer)
            }
            Lookup::Miss => self.inner.fetch(key, source, fill).await,
        }
    }

    /// What memory alone says. Nothing is sent, and nobody waits.
    #[must_use]
    pub fn get(&self, key: &CacheKey) -> Lookup {
        self.inner.get(key)
    }

    /// Looks behind an answer that was stale, in Redis and then in the store, unless somebody does already.
    pub fn refresh_in_background<F, Fut>(&self, key: CacheKey, fill: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        self.inner.refresh(key, Source::RedisThenStore, fill);
    }

    /// The body of an answer in gzip: compressed by `compress` when it is first asked for, and from then on cached
    /// beside the plain one, as long as that. `None` where `compress` says that gzip is of no use.
    ///
    /// Redis has the plain body alone. To compress it costs a replica less than a millisecond, once; in Redis it would
    /// cost every record a quarter more memory, and every read as much more of the network, asked for or not.
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
            self.inner.weigh_again(key, body);
        }
        gzip
    }

    /// Whether this replica hears invalidations now.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.inner.is_heard()
    }

    /// What the cache did, and what it holds.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.inner.counts()
    }
}

impl<E> Clone for Cache<E> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), feed: self.feed.clone() }
    }
}

impl<E: Send + Sync + 'static> fmt::Debug for Cache<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("counts", &self.inner.counts()).finish_non_exhaustive()
    }
}
