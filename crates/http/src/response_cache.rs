//! Reads responses through the cache.

use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{Cache, CacheKey, CachedResponse, FillError, Filled, MemoryLookup};
use chart_index_domain::ReadError;

use crate::text_body::compressed;
use crate::{ApiError, CdnConfig, CdnHeaders, Overload, RequestHeaders, TextBody};

/// The cache of responses. All handlers read through it.
#[derive(Debug, Clone)]
pub struct ResponseCache {
    cache: Arc<Cache>,
    cdn: CdnConfig,
}

impl ResponseCache {
    /// Without headers for a CDN.
    #[must_use]
    pub const fn new(cache: Arc<Cache>) -> Self {
        Self { cache, cdn: CdnConfig { cdn_max_age_seconds: None } }
    }

    /// Adds headers for a CDN to responses.
    #[must_use]
    pub fn with_cdn(self, cdn: CdnConfig) -> Self {
        Self { cdn, ..self }
    }

    /// The headers for a CDN of the response with this key, which was just read; none if it depends on more
    /// than one chart or chartset.
    #[must_use]
    pub fn cdn_headers(&self, key: &CacheKey) -> CdnHeaders {
        if self.cdn.cdn_max_age_seconds.is_none() {
            return CdnHeaders::default();
        }
        let headers = |tag: String| self.cdn.headers(&tag, self.cache.is_current(key));
        key.entity_text().map(headers).unwrap_or_default()
    }

    /// Reads a response from memory, from Redis or by the fill, see [`Cache::get`].
    ///
    /// # Errors
    ///
    /// If there is no stale response to serve: the error of the fill, [`ApiError::Unavailable`] if the fill
    /// timed out, [`ApiError::Overloaded`] if too many are in flight.
    pub async fn read<F, Fut, R>(&self, key: CacheKey, fill: F) -> Result<CachedResponse, ApiError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        Ok(self.cache.get(key, fill).await?)
    }

    /// Reads a text body as [`ResponseCache::read`] does; `None` if the index does not hold it. The first
    /// request that accepts gzip compresses the body and adds the result to the cache.
    ///
    /// # Errors
    ///
    /// As for [`ResponseCache::read`].
    pub async fn read_text<F, Fut, R>(
        &self,
        key: CacheKey,
        request: &RequestHeaders,
        fill: F,
    ) -> Result<Option<TextBody>, ApiError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, ReadError>> + Send + 'static,
        R: Into<Filled> + 'static,
    {
        Ok(self.text(&key, request, self.read(key, fill).await?))
    }

    /// Reads the responses of many keys of one kind, see [`Cache::get_many`].
    ///
    /// # Errors
    ///
    /// As for [`ResponseCache::read`], if one of the responses cannot be read.
    pub async fn read_many<F, Fut>(&self, keys: &[CacheKey], fill: F) -> Result<Vec<CachedResponse>, ApiError>
    where
        F: FnOnce(Vec<usize>) -> Fut,
        Fut: Future<Output = Result<Vec<CachedResponse>, ReadError>>,
    {
        Ok(self.cache.get_many(keys, fill).await?)
    }

    /// The time since a response in memory was read, if it is served because the store does not respond, see
    /// [`Cache::age`].
    #[must_use]
    pub fn age(&self, key: &CacheKey) -> Option<Duration> {
        self.cache.age(key)
    }

    /// Takes a text body from memory if it may be served without a read of the store.
    #[must_use]
    pub fn text_in_memory(&self, key: CacheKey, request: &RequestHeaders) -> Option<TextBody> {
        match self.cache.get_from_memory(&key) {
            MemoryLookup::Fresh(cached) | MemoryLookup::Stale(cached) => self.text(&key, request, cached),
            MemoryLookup::Miss => None,
        }
    }

    /// Takes a text body from memory because the store does not respond, however stale it is.
    #[must_use]
    pub fn older_text(&self, key: CacheKey, request: &RequestHeaders) -> Option<TextBody> {
        self.text(&key, request, self.cache.fallback(&key)?)
    }

    fn text(&self, key: &CacheKey, request: &RequestHeaders, cached: CachedResponse) -> Option<TextBody> {
        let CachedResponse::Found(cached) = cached else { return None };
        let body = TextBody::from_cached(cached.clone());
        if body.prefers_gzip(request) {
            self.cache.gzip(key, &cached, compressed);
        }
        Some(body)
    }
}

impl From<FillError> for ApiError {
    fn from(error: FillError) -> Self {
        match error {
            FillError::Failed(error) => error.into(),
            FillError::TimedOut => Self::Unavailable(error.into()),
            FillError::Overloaded => Self::Overloaded(Overload::Fills),
            FillError::Abandoned => Self::Internal(error.into()),
        }
    }
}

impl From<Arc<ReadError>> for ApiError {
    /// All requests that wait for one fill share its error.
    fn from(error: Arc<ReadError>) -> Self {
        match *error {
            ReadError::Unavailable { .. } | ReadError::Unsupported { .. } => Self::Unavailable(error.into()),
            ReadError::Failed { .. } => Self::Internal(error.into()),
        }
    }
}
