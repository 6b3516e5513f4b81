//! Reads combined with the rate limit in one round trip to Redis.

use chart_index_ratelimit::{Decision, Limiter, PreparedCheck};
use chart_index_redis::CommandError;
use redis::Value;

use crate::fills::FillSource;
use crate::freshness::Freshness;
use crate::redis_record::Record;
use crate::single_flight::Outcome;
use crate::{Cache, CacheKey, CachedResponse, FillError, Kind, MemoryLookup};

/// The outcome of a rate-limited read.
#[derive(Debug)]
pub enum Admission<E> {
    /// The request exceeds its limit. Nothing was read from the store.
    Refused(Decision),
    /// The request is within its limit. This is the response.
    Admitted(Result<CachedResponse, FillError<E>>),
}

impl<E: Send + Sync + 'static> Cache<E> {
    /// Checks the rate limit of a request, and returns the response like [`get_or_fill`](Self::get_or_fill), with at
    /// most one round trip to Redis:
    ///
    /// - If the response is in memory, Redis is asked for the rate limit only.
    /// - Otherwise one pipeline asks for the rate limit and the response. A ROX file is read over its own connection
    ///   at the same time.
    /// - If a fill for the response is in flight, Redis is asked for the rate limit only, and the fill is joined.
    /// - If so many fills wait for a permit that this one would be rejected, Redis is not asked: to reject a request must
    ///   cost little.
    ///
    /// Writes to Redis after a fill happen in the background. A refused request reads nothing from the store. While
    /// Redis is unavailable, the limiter uses its local window, and the fill starts at once.
    ///
    /// The limiter should share the connection [`CacheConnections::main`](crate::CacheConnections::main).
    pub async fn get_or_fill_rate_limited<F, Fut>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
    ) -> Admission<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let cached = self.get_from_memory(&key);
        if cached == MemoryLookup::Miss {
            // Boxed, as below: futures of hits are small, since what is larger is only needed by other requests.
            return Box::pin(self.check_and_read(limiter, check, key, fill)).await;
        }
        let decision = limiter.decide(check).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let response = match cached {
            MemoryLookup::Fresh(response) => Ok(response),
            MemoryLookup::Stale(response) => {
                self.refresh_in_background(key, fill);
                Ok(response)
            }
            MemoryLookup::Miss => Box::pin(self.inner.fetch(key, FillSource::Store, fill)).await,
        };
        Admission::Admitted(response)
    }

    /// Asks Redis for the rate limit and the response together, and the store if Redis does not have the response.
    async fn check_and_read<F, Fut>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
    ) -> Admission<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let Some(start) = self.inner.start_read(&key) else {
            let decision = limiter.decide(check).await;
            return self.if_admitted(decision, self.inner.fetch(key, FillSource::Store, fill)).await;
        };
        let Some(announced) = self.inner.limits.announce_fill(key.kind()) else {
            return Admission::Admitted(self.inner.shed(&key));
        };
        let (limit, record) = self.ask_redis(limiter, &check, &key).await;
        drop(announced);
        let decision = limiter.finish(check, limit).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let inner = &self.inner;
        let response = match inner.insert_record(key, record, start) {
            Some((response, Freshness::Fresh)) => Ok(response),
            Some((response, Freshness::Stale)) => {
                inner.refresh(key, FillSource::Store, fill);
                Ok(response)
            }
            Some((_, Freshness::MustRevalidate | Freshness::Expired)) | None => {
                inner.fetch(key, FillSource::Store, fill).await
            }
        };
        Admission::Admitted(response)
    }

    async fn if_admitted(
        &self,
        decision: Decision,
        response: impl Future<Output = Outcome<E>>,
    ) -> Admission<E> {
        if decision.is_admitted() {
            Admission::Admitted(response.await)
        } else {
            Admission::Refused(decision)
        }
    }

    /// Sends the rate limit check and the read together.
    async fn ask_redis(
        &self,
        limiter: &Limiter,
        check: &PreparedCheck,
        key: &CacheKey,
    ) -> (Result<Value, CommandError>, Option<Record>) {
        let (redis, deadline) = (&self.inner.redis, check.deadline());
        let (limit, get) = (check.command(), redis.get_command(key));
        let (limit, value) = if key.kind() == Kind::Rox {
            let connection = redis.connection(Kind::Rox);
            tokio::join!(limiter.connection().run(limit, deadline), connection.run(&get, deadline))
        } else {
            match limiter.connection().run_all(vec![limit.clone(), get], deadline).await {
                Ok(replies) => two(replies),
                Err(error) => (Err(error), Err(CommandError::Unavailable)),
            }
        };
        (limit, redis.record(key, value))
    }
}

/// The two replies of a pipeline.
fn two(
    replies: Vec<Result<Value, CommandError>>,
) -> (Result<Value, CommandError>, Result<Value, CommandError>) {
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap_or(Err(CommandError::UnexpectedReply));
    (next(), next())
}
