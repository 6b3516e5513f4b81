//! Finished answers behind the limits: what the handlers of every service read through.

use std::sync::Arc;

use axum::Router;
use chart_index_cache::{Admission, Cache, CacheKey, CachedResponse, FillError};
use chart_index_domain::ReadError;
use chart_index_ratelimit::Group;

use crate::answer::compressed;
use crate::{ApiError, Conditions, JsonBody, RateLimiting, Turn};

/// The limits and the cache, which ask Redis together.
#[derive(Debug, Clone)]
pub struct Answers {
    limiting: RateLimiting,
    cache: Cache<ReadError>,
}

/// A fill did not come to its end: it panicked, or the process is stopping.
#[derive(Debug, thiserror::Error)]
#[error("the read was given up")]
struct Abandoned;

/// A fill was stopped because it took too long.
#[derive(Debug, thiserror::Error)]
#[error("the read timed out")]
struct TimedOut;

impl Answers {
    /// Answers from this cache, for those that pass these limits. The limiter is to share its link to Redis with the
    /// cache.
    #[must_use]
    pub const fn new(limiting: RateLimiting, cache: Cache<ReadError>) -> Self {
        Self { limiting, cache }
    }

    /// Puts the limit of a group around routes, see [`RateLimiting::limit`].
    pub fn limit<S: Clone + Send + Sync + 'static>(&self, group: Group, routes: Router<S>) -> Router<S> {
        self.limiting.limit(group, routes)
    }

    /// The answer of that name, if the request passes its limit: from memory, from Redis, or by the fill. Asks Redis
    /// once, for the limit and the answer together, see [`Cache::get_or_fill_rate_limited`].
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`]; where no older answer can stand in, what the fill failed with,
    /// [`ApiError::Unavailable`] when it took too long, or [`ApiError::Overloaded`] when too many are in flight.
    pub async fn read<F, Fut>(&self, turn: &Turn, key: CacheKey, fill: F) -> Result<CachedResponse, ApiError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, ReadError>> + Send + 'static,
    {
        let Some(check) = turn.take() else {
            // It passed already, with an answer that was not to be had.
            return outcome(self.cache.get_or_fill_without_redis(key, fill).await);
        };
        let group = check.group();
        match self.cache.get_or_fill_rate_limited(self.limiting.limiter(), check, key, fill).await {
            Admission::Refused(decision) => Err(ApiError::RateLimited(group, decision)),
            Admission::Admitted { response, .. } => outcome(response),
        }
    }

    /// The JSON body of that name, as [`Answers::read`] does; `None` where the index does not hold it. For a request
    /// that accepts gzip the body is compressed when it is first asked for, and cached so.
    ///
    /// # Errors
    ///
    /// As for [`Answers::read`].
    pub async fn read_json<F, Fut>(
        &self,
        turn: &Turn,
        key: CacheKey,
        conditions: &Conditions,
        fill: F,
    ) -> Result<Option<JsonBody>, ApiError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, ReadError>> + Send + 'static,
    {
        let CachedResponse::Found(cached) = self.read(turn, key, fill).await? else { return Ok(None) };
        let body = JsonBody::cached(cached.clone());
        if body.is_for_gzip(conditions) {
            self.cache.gzip(&key, &cached, compressed);
        }
        Ok(Some(body))
    }
}

fn outcome(answer: Result<CachedResponse, FillError<ReadError>>) -> Result<CachedResponse, ApiError> {
    answer.map_err(|error| match error {
        FillError::Failed(error) => ApiError::from(error),
        FillError::TimedOut => ApiError::Unavailable(TimedOut.into()),
        FillError::Overloaded => ApiError::Overloaded,
        FillError::Abandoned => ApiError::Internal(Abandoned.into()),
    })
}

impl From<Arc<ReadError>> for ApiError {
    /// Many requests may share one failure.
    fn from(error: Arc<ReadError>) -> Self {
        match *error {
            ReadError::Unavailable { .. } => Self::Unavailable(error.into()),
            ReadError::Failed { .. } => Self::Internal(error.into()),
        }
    }
}
