//! Chooses the search engine of a list request, and falls back to the second one.
//!
//! With Meilisearch nodes there are two engines: Meilisearch is the primary one, PostgreSQL the fallback.
//! Without nodes PostgreSQL is the only engine. The server connects the engines; the choice between them is
//! made here alone.
//!
//! The primary engine knows which queries it can run exactly ([`supports`](SearchIndex::supports)) and whether
//! one of its nodes can be searched ([`is_available`](SearchIndex::is_available)), so the engine is chosen
//! before the cache is read. If a search in an available engine fails, because its node has just failed or
//! lacks a feature, the page is read from the fallback. While the primary engine is not available:
//!
//! | Page of the primary engine in memory | Page of the fallback | Response | `X-Search-Engine` |
//! |---|---|---|---|
//! | fresh, or stale | | that of the primary engine | primary |
//! | has to be revalidated | cached, or found by a search | that of the fallback | fallback |
//! | has to be revalidated | cannot be read | that of the primary engine | primary |
//! | none, or expired | cached, or found by a search | that of the fallback | fallback |
//! | none, or expired | cannot be read | 503, or 500 after an internal error | |
//!
//! A request that finds too many fills in flight for the primary engine ([`ApiError::Overloaded`]) fails
//! without trying the fallback: that would only move the load.
//!
//! Both engines return the same list, but not at the same moment, so their pages never share a cache entry: the
//! key of a page is made of the engine and the parsed query. Their searches wait in different queues, which the
//! cache chooses by the key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chart_index_cache::{CacheKey, Filled};
use chart_index_domain::ReadError;
use chart_index_domain::search::{ChartsetPage, Engine, RatingHistogram, SearchIndex, SearchQuery};
use chart_index_http::{ApiError, RequestHeaders, ResponseCache, TextBody};

use crate::json_bodies::ListBody;
use crate::metrics::{Role, SearchMetrics};

/// The primary search engine and, optionally, a fallback.
#[derive(Clone)]
pub struct SearchEngines {
    primary: Arc<dyn SearchIndex>,
    fallback: Option<Arc<dyn SearchIndex>>,
    metrics: Arc<SearchMetrics>,
}

impl SearchEngines {
    /// A single engine. While it fails, a list that is not cached is 503.
    pub fn new(engine: Arc<dyn SearchIndex>) -> Self {
        Self { primary: engine, fallback: None, metrics: Arc::default() }
    }

    /// A primary engine, and a fallback for the pages that it cannot return.
    pub fn with_fallback(primary: Arc<dyn SearchIndex>, fallback: Arc<dyn SearchIndex>) -> Self {
        Self { primary, fallback: Some(fallback), metrics: Arc::default() }
    }

    /// Returns a page of the list in this format, and the engine that it comes from.
    pub async fn read_page<F: PageFormat>(
        &self,
        read: ListRead<'_>,
        query: SearchQuery,
        format: &Arc<F>,
    ) -> Result<ListPage, ApiError> {
        let query = Arc::new(query);
        let Some(fallback) = &self.fallback else {
            return self.read_page_of(Role::Primary, &self.primary, read, &query, format).await;
        };
        if !self.primary.supports(&query) {
            return self.read_page_of(Role::Fallback, fallback, read, &query, format).await;
        }
        if !self.primary.is_available() {
            return self.read_page_without_primary(fallback, read, &query, format).await;
        }
        match self.read_page_of(Role::Primary, &self.primary, read, &query, format).await {
            Err(error @ (ApiError::Unavailable(_) | ApiError::Internal(_))) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "falling back to the second search engine"
                );
                self.read_page_of(Role::Fallback, fallback, read, &query, format).await
            }
            page => page,
        }
    }

    /// Reads a page while the primary engine is not available.
    async fn read_page_without_primary<F: PageFormat>(
        &self,
        fallback: &Arc<dyn SearchIndex>,
        read: ListRead<'_>,
        query: &Arc<SearchQuery>,
        format: &Arc<F>,
    ) -> Result<ListPage, ApiError> {
        let engine = self.primary.engine();
        let key = format.cache_key(&format.with_name(cache_name(query)?, false)).searched_by(engine);
        if read.cache.older_text(key, read.headers).is_none() {
            return self.read_page_of(Role::Fallback, fallback, read, query, format).await;
        }
        let (cache, headers) = (read.cache, read.headers);
        let of_primary = |body| {
            self.metrics.count_response(engine, Role::Primary);
            ListPage { engine, body, age: cache.age(&key) }
        };
        if let Some(body) = cache.text_in_memory(key, headers) {
            return Ok(of_primary(body));
        }
        match self.read_page_of(Role::Fallback, fallback, read, query, format).await {
            Err(error @ (ApiError::Unavailable(_) | ApiError::Internal(_) | ApiError::Overloaded(_))) => {
                cache.older_text(key, headers).map(of_primary).ok_or(error)
            }
            page => page,
        }
    }

    /// Reads the page of one engine, from the cache or by a search.
    async fn read_page_of<F: PageFormat>(
        &self,
        role: Role,
        engine: &Arc<dyn SearchIndex>,
        ListRead { cache, headers }: ListRead<'_>,
        query: &Arc<SearchQuery>,
        format: &Arc<F>,
    ) -> Result<ListPage, ApiError> {
        let search = Search {
            engine: Arc::clone(engine),
            is_fallback: role == Role::Fallback,
            query: Arc::clone(query),
            metrics: Arc::clone(&self.metrics),
        };
        let name = format.with_name(cache_name(query)?, search.is_fallback);
        let key = format.cache_key(&name).searched_by(engine.engine());
        let fill = {
            let format = Arc::clone(format);
            move || async move { format.fill(search).await }
        };
        let body = cache.read_text(key, headers, fill).await?;
        let body = body.ok_or_else(|| ApiError::Internal(CachedWithoutPage.into()))?;
        self.metrics.count_response(engine.engine(), role);
        Ok(ListPage { engine: engine.engine(), body, age: cache.age(&key) })
    }
}

impl fmt::Debug for SearchEngines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchEngines")
            .field("primary", &self.primary.engine())
            .field("fallback", &self.fallback.as_ref().map(|fallback| fallback.engine()))
            .finish_non_exhaustive()
    }
}

/// How a list is read: through the response cache, for a request with these headers.
#[derive(Debug, Clone, Copy)]
pub struct ListRead<'a> {
    /// Where pages are cached.
    pub cache: &'a ResponseCache,
    /// The headers that decide how the body is sent.
    pub headers: &'a RequestHeaders,
}

/// A rendered page of the list.
#[derive(Debug)]
pub struct ListPage {
    /// The engine that found the page; the value of `X-Search-Engine`.
    pub engine: Engine,
    /// The body, in the format that was asked for.
    pub body: TextBody,
    /// The time since the search, if the body is in memory.
    pub age: Option<Duration>,
}

/// What a [`PageFormat`] searches, for its query and for others.
pub struct Search {
    engine: Arc<dyn SearchIndex>,
    /// Whether the primary engine failed, and this is the fallback.
    pub is_fallback: bool,
    /// The query of the list.
    pub query: Arc<SearchQuery>,
    metrics: Arc<SearchMetrics>,
}

impl Search {
    /// Returns a page of the same engine, for this or another query.
    pub async fn find_page(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        let found = self.engine.search(query);
        self.metrics.observe(self.engine.engine(), found).await
    }

    /// Returns how the ratings of what the query finds are distributed.
    pub async fn rating_histogram(&self) -> Result<RatingHistogram, ReadError> {
        let found = self.engine.rating_histogram(&self.query);
        self.metrics.observe(self.engine.engine(), found).await
    }
}

/// A response that one search engine fills, cached by engine.
pub trait PageFormat: Send + Sync + 'static {
    /// The cache key of a page with this name, a list or a page. The search engine is added to it.
    fn cache_key(&self, name: &[u8]) -> CacheKey;

    /// Adds to the name what else the body depends on.
    fn with_name(&self, name: Vec<u8>, _is_fallback: bool) -> Vec<u8> {
        name
    }

    /// Searches, and renders what was found. The result is cached.
    fn fill(&self, search: Search) -> impl Future<Output = Result<Filled, ReadError>> + Send;
}

pub(crate) struct JsonFormat;

impl PageFormat for JsonFormat {
    fn cache_key(&self, name: &[u8]) -> CacheKey {
        CacheKey::list(name)
    }

    async fn fill(&self, search: Search) -> Result<Filled, ReadError> {
        let page = search.find_page(&search.query).await?;
        let response = TextBody::json(&ListBody::new(&page, &search.query))?.into_cached();
        Ok(Filled { response, position: page.position })
    }
}

/// The name under which the page of a query is cached.
fn cache_name(query: &SearchQuery) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(query).map_err(|error| ApiError::Internal(error.into()))
}

/// Every query has a page, if only an empty one: "not found" is never cached under the key of a list.
#[derive(Debug, thiserror::Error)]
#[error("the cache entry of a list is not a page")]
struct CachedWithoutPage;

#[cfg(test)]
mod tests {
    use chart_index_domain::search::parse_query_string;

    use super::*;

    #[test]
    fn equal_queries_in_other_words_share_a_cache_entry() {
        let name = |query| cache_name(&parse_query_string(query).unwrap()).unwrap();
        assert_eq!(name("sort=title&page=2"), name("page=2&sort=title&order=asc&ignored=1"));
        assert_ne!(name("sort=title&page=2"), name("sort=title&page=3"));
        assert_ne!(name("after=start"), name(""));
    }
}
