//! The public interface of the cache.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chart_index_domain::ReadError;
use chart_index_permits::Announced;
use chart_index_redis::RedisConnection;
use futures_util::TryFutureExt;

use crate::fills::Purpose;
use crate::freshness::Freshness;
use crate::read_through::ReadThrough;
use crate::{
    CacheConfig, CacheConnections, CacheKey, CacheStats, CachedBody, CachedResponse, FillError, Filled, Kind,
    MemoryLookup, Representation, stats,
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
        stats::observe(&inner);
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

    /// Returns the response like [`get_or_fill`](Self::get_or_fill), if `admission` succeeds, which is what
    /// decides on the rate limit by asking Redis over this connection. Both take at most one round trip:
    ///
    /// - If the response is in memory, only the admission asks Redis.
    /// - Otherwise the response is read from Redis at the same time, over the same connection. A ROX file is
    ///   read over its own connection.
    /// - If a fill for the response is in flight, only the admission asks Redis, and the fill is joined.
    /// - If this fill would be rejected because too many others wait for a permit, the admission is awaited if
    ///   there is an older response to serve, else nothing is: rejecting a request must cost little.
    ///
    /// # Errors
    ///
    /// That of the admission, before anything is read from the store, or that of the fill.
    pub async fn get_or_fill_if_admitted<E, F, Fut, R>(
        &self,
        key: CacheKey,
        connection: &RedisConnection,
        admission: impl Future<Output = Result<(), E>>,
        fill: F,
    ) -> Result<CachedResponse, E>
    where
        E: From<FillError>,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        let cached = self.get_from_memory(&key);
        let fill = || fill().map_ok(Into::into);
        if cached == MemoryLookup::Miss && !self.inner.is_in_flight(&key) {
            let Some(announced) = self.inner.limits.announce_fill(key.kind()) else {
                if self.inner.fallback(&key).is_some() {
                    admission.await?;
                }
                return Ok(self.inner.shed(&key)?);
            };
            // Boxed, as below: the future of a hit is small, since what is larger is only needed by others.
            return Box::pin(self.read_if_admitted(key, connection, admission, fill, announced)).await;
        }
        admission.await?;
        match cached {
            MemoryLookup::Fresh(response) => Ok(response),
            MemoryLookup::Stale(response) => {
                self.inner.refresh(key, Purpose::RefreshFromRedis, fill);
                Ok(response)
            }
            // A fill is in flight.
            MemoryLookup::Miss => Ok(Box::pin(self.inner.fetch(key, None, fill)).await?),
        }
    }

    /// Awaits the admission and the read of Redis together, and reads the store if Redis does not have the
    /// response.
    async fn read_if_admitted<E, F, Fut>(
        &self,
        key: CacheKey,
        connection: &RedisConnection,
        admission: impl Future<Output = Result<(), E>>,
        fill: F,
        announced: Announced,
    ) -> Result<CachedResponse, E>
    where
        E: From<FillError>,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Filled, ReadError>> + Send + 'static,
    {
        let inner = &self.inner;
        let connection = if key.kind().is_file() { inner.redis.connection(key.kind()) } else { connection };
        let (admitted, record) = tokio::join!(admission, inner.redis.get_over(connection, &key));
        admitted?;
        match inner.insert_record(key, record) {
            Some((response, Freshness::Fresh)) => Ok(response),
            Some((response, Freshness::Stale)) => {
                inner.refresh(key, Purpose::Refresh, fill);
                Ok(response)
            }
            Some((_, Freshness::MustRevalidate | Freshness::Expired)) | None => {
                Ok(inner.fetch(key, Some(announced), fill).await?)
            }
        }
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
