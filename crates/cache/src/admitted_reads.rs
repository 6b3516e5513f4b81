//! Reads for requests that are still to be admitted.

use chart_index_domain::ReadError;
use chart_index_permits::Announced;
use chart_index_redis::RedisConnection;
use futures_util::TryFutureExt;

use crate::fills::Purpose;
use crate::freshness::Freshness;
use crate::{Cache, CacheKey, CachedResponse, FillError, Filled, MemoryLookup};

impl Cache {
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
}
