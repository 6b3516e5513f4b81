//! Finished answers behind the limits: what the handlers of every service read through.

use std::sync::Arc;

use axum::Router;
use chart_index_cache::{Admission, Cache, CacheKey, CachedAnswer, FillError};
use chart_index_domain::ReadError;
use chart_index_ratelimit::Group;

use crate::{ApiError, RateLimiting, Turn};

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
    /// once, for the limit and the answer together, see [`Cache::read_admitted`].
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`]; what the fill failed with, where no older answer can stand in.
    pub async fn read<F, Fut>(&self, turn: &Turn, key: CacheKey, fill: F) -> Result<CachedAnswer, ApiError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedAnswer, ReadError>> + Send + 'static,
    {
        let Some(check) = turn.take() else {
            // It passed already, with an answer that was not to be had.
            return outcome(self.cache.read_here(key, fill).await);
        };
        let group = check.group();
        match self.cache.read_admitted(self.limiting.limiter(), check, key, fill).await {
            Admission::Refused(decision) => Err(ApiError::RateLimited(group, decision)),
            Admission::Admitted { answer, .. } => outcome(answer),
        }
    }
}

fn outcome(answer: Result<CachedAnswer, FillError<ReadError>>) -> Result<CachedAnswer, ApiError> {
    answer.map_err(|error| match error {
        FillError::Failed(error) => ApiError::from(error),
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
