//! Chooses the search engine of a list request, and falls back to the second one.
//!
//! With Meilisearch nodes there are two engines: Meilisearch is the primary one, PostgreSQL the fallback. Without
//! nodes PostgreSQL is the only engine. The server connects the engines; the choice between them is made here alone.
//!
//! | Cached page of the primary engine | Search in the primary engine | Response | `X-Search-Engine` |
//! |---|---|---|---|
//! | fresh, or stale and refreshed in the background | not awaited | the cached page | primary |
//! | has to be revalidated | succeeds | the new page | primary |
//! | has to be revalidated | fails | the cached page | primary |
//! | none, or expired | succeeds | the new page | primary |
//! | none, or expired | fails | the page of the fallback: cached in memory, else searched | fallback |
//! | none, or expired | fails, and so does the fallback, if there is one | 503, or 500 after an internal error | |
//!
//! A search in Meilisearch fails when no node can be searched, and for the few queries that it cannot run exactly. The
//! rate limit is checked once per request. A request above it, or one that finds too many fills in flight
//! ([`ApiError::Overloaded`]), fails without trying the fallback: that would only move the load.
//!
//! Both engines return the same list, but not at the same moment, so their pages never share a cache entry. The key of
//! a page is made of the name of the engine, the parsed query and the engine's generation:
//!
//! ```text
//! /api/chartsets?sort=title&page=2   meilisearch at checkpoint 5012   ("meilisearch", {sort: title, page: 2, …}), 5012
//! the same request                   postgres at generation 5013      ("postgres",    {sort: title, page: 2, …}), 5013
//! ```

use std::fmt;
use std::sync::Arc;

use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::ReadError;
use chart_index_domain::search::{Engine, Generation, SearchIndex, SearchQuery};
use chart_index_http::{ApiError, JsonBody, RateLimitCheck, RequestHeaders, ResponseCache};

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

    /// A page of the list, and the engine that it comes from.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`], [`ApiError::Overloaded`], or the error of the last engine that was searched.
    pub(crate) async fn page(
        &self,
        cache: &ResponseCache,
        check: &RateLimitCheck,
        query: SearchQuery,
        headers: &RequestHeaders,
    ) -> Result<(Engine, JsonBody), ApiError> {
        let query = Arc::new(query);
        let page = self.page_of(Role::Primary, &self.primary, cache, check, &query, headers).await;
        match (page, &self.fallback) {
            (Err(error @ (ApiError::Unavailable(_) | ApiError::Internal(_))), Some(fallback)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "falling back to the second search engine"
                );
                self.page_of(Role::Fallback, fallback, cache, check, &query, headers).await
            }
            (page, _) => page,
        }
    }

    /// The page of one engine, from the cache or by a search.
    async fn page_of(
        &self,
        role: Role,
        engine: &Arc<dyn SearchIndex>,
        cache: &ResponseCache,
        check: &RateLimitCheck,
        query: &Arc<SearchQuery>,
        headers: &RequestHeaders,
    ) -> Result<(Engine, JsonBody), ApiError> {
        let generation = engine.generation();
        let key = cache_key(engine.engine(), query, generation)?;
        let fill = {
            let (engine, query, metrics) = (Arc::clone(engine), Arc::clone(query), Arc::clone(&self.metrics));
            move || async move {
                let found = search(engine.as_ref(), &query, generation);
                metrics.observe(engine.engine(), found).await
            }
        };
        let body = cache.read_json(check, key, headers, fill).await?;
        let body = body.ok_or_else(|| ApiError::Internal(CachedWithoutPage.into()))?;
        self.metrics.count_response(engine.engine(), role);
        Ok((engine.engine(), body))
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

/// The name under which the page of that engine is cached.
fn cache_key(engine: Engine, query: &SearchQuery, generation: Generation) -> Result<CacheKey, ApiError> {
    let normalised_query =
        serde_json::to_vec(&(engine.as_str(), query)).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(CacheKey::list(&normalised_query, generation))
}

async fn search(
    engine: &dyn SearchIndex,
    query: &SearchQuery,
    generation: Generation,
) -> Result<CachedResponse, ReadError> {
    let page = engine.search(query, generation).await?;
    let list = ListBody::new(&page, query.page);
    Ok(JsonBody::render_sized(&list, list.capacity())?.into_cached())
}

/// Every query has a page, an empty one at least: "not found" is never cached under the key of a list.
#[derive(Debug, thiserror::Error)]
#[error("the cache entry of a list is not a page")]
struct CachedWithoutPage;

#[cfg(test)]
mod tests {
    use chart_index_domain::search::parse_query_string;

    use super::*;

    #[test]
    fn engines_and_generations_never_share_a_cache_entry() {
        let query = parse_query_string("sort=title&page=2").unwrap();
        let same = parse_query_string("page=2&sort=title&order=asc&ignored=1").unwrap();
        let key = |engine, query, generation| cache_key(engine, query, Generation(generation)).unwrap();
        let cached = key(Engine::Meilisearch, &query, 5_012);
        assert_eq!(cached, key(Engine::Meilisearch, &same, 5_012), "an equal query in other words");
        assert_ne!(cached, key(Engine::Meilisearch, &query, 5_013));
        assert_ne!(cached, key(Engine::Postgres, &query, 5_012));
    }
}
