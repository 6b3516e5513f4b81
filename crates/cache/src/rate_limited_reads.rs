//! Reads combined with the rate limit in one round trip to Redis.

use chart_index_domain::ReadError;
use chart_index_permits::Announced;
use chart_index_ratelimit::{Decision, Limiter, PreparedCheck};
use futures_util::TryFutureExt;

use crate::fills::FillSource;
use crate::freshness::Freshness;
use crate::redis_record::Record;
use crate::{Cache, CacheKey, CachedResponse, FillError, Filled, Kind, MemoryLookup};

/// The outcome of a rate-limited read.
#[derive(Debug)]
pub enum Admission {
    /// The request exceeds its limit. Nothing was read from the store.
    Refused(Decision),
    /// The request is within its limit. This is the response.
    Admitted(Result<CachedResponse, FillError>),
}

impl Cache {
    /// Checks the rate limit of a request, and returns the response like [`get_or_fill`](Self::get_or_fill),
    /// with at most one round trip to Redis:
    ///
    /// - If the response is in memory, Redis is asked for the rate limit only.
    /// - Otherwise Redis is asked for the rate limit and the response at the same time, over the connection of
    ///   the limiter. A ROX file is read over its own connection.
    /// - If a fill for the response is in flight, Redis is asked for the rate limit only, and the fill is
    ///   joined.
    /// - If this fill would be rejected because too many others wait for a permit, Redis is asked for the rate
    ///   limit if there is an older response to serve, else for nothing: rejecting a request must cost little.
    ///
    /// Writes to Redis after a fill happen in the background. A refused request reads nothing from the store.
    /// While Redis is unavailable, the limiter uses its local window, and the fill starts at once.
    pub async fn get_or_fill_rate_limited<F, Fut, R>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
    ) -> Admission
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        let cached = self.get_from_memory(&key);
        let fill = || fill().map_ok(Into::into);
        if cached == MemoryLookup::Miss && !self.inner.is_in_flight(&key) {
            let Some(announced) = self.inner.limits.announce_fill(key.kind()) else {
                return Box::pin(self.shed(limiter, check, &key)).await;
            };
            // Boxed, as below: futures of hits and of rejections are small, since what is larger is only needed
            // by others.
            return Box::pin(self.check_and_read(limiter, check, key, fill, announced)).await;
        }
        let decision = limiter.decide(check).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let response = match cached {
            MemoryLookup::Fresh(response) => Ok(response),
            MemoryLookup::Stale(response) => {
                self.inner.refresh(key, FillSource::RedisThenStore, fill);
                Ok(response)
            }
            // A fill is in flight.
            MemoryLookup::Miss => Box::pin(self.inner.fetch(key, FillSource::Store(None), fill)).await,
        };
        Admission::Admitted(response)
    }

    /// An older response within the rate limit, or an error, which does not count.
    async fn shed(&self, limiter: &Limiter, check: PreparedCheck, key: &CacheKey) -> Admission {
        if self.inner.fallback(key).is_some() {
            let decision = limiter.decide(check).await;
            if !decision.is_admitted() {
                return Admission::Refused(decision);
            }
        }
        Admission::Admitted(self.inner.shed(key))
    }

    /// Asks Redis for the rate limit and the response together, and the store if Redis does not have the
    /// response.
    async fn check_and_read<F, Fut>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
        announced: Announced,
    ) -> Admission
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Filled, ReadError>> + Send + 'static,
    {
        let (decision, record) = self.ask_redis(limiter, check, &key).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let inner = &self.inner;
        let response = match inner.insert_record(key, record) {
            Some((response, Freshness::Fresh)) => Ok(response),
            Some((response, Freshness::Stale)) => {
                inner.refresh(key, FillSource::Store(None), fill);
                Ok(response)
            }
            Some((_, Freshness::MustRevalidate | Freshness::Expired)) | None => {
                inner.fetch(key, FillSource::Store(Some(announced)), fill).await
            }
        };
        Admission::Admitted(response)
    }

    /// Sends the rate limit check and the read together.
    async fn ask_redis(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: &CacheKey,
    ) -> (Decision, Option<Record>) {
        let redis = &self.inner.redis;
        let connection = match key.kind() {
            Kind::Rox | Kind::Preview => redis.connection(key.kind()).clone(),
            Kind::Lookup | Kind::List | Kind::Detail | Kind::Source | Kind::Page => {
                check.connection().clone()
            }
        };
        tokio::join!(limiter.decide(check), redis.get_over(&connection, key))
    }
}
