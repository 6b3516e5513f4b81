//! A page of the list: from what is kept, from the engine, or from the engine that stands in for it.

use std::sync::Arc;

use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::ReadError;
use chart_index_domain::search::{Engine, Generation, SearchIndex, SearchQuery};
use chart_index_http::{ApiError, Conditions, JsonBody, Turn};

use crate::BrowseState;
use crate::wire::ListAnswer;

/// A page, and the engine that it is from.
///
/// While the engine fails, a page of it that is kept is given again, of whatever age can be served at all; where
/// there is none, the engine that stands in is asked. Each engine's pages are kept by themselves, so the name of the
/// engine is always that of the page.
///
/// # Errors
///
/// [`ApiError::RateLimited`]; what the last engine that was asked failed with.
pub(crate) async fn read(
    state: &BrowseState,
    turn: &Turn,
    query: SearchQuery,
    conditions: &Conditions,
) -> Result<(Engine, JsonBody), ApiError> {
    let query = Arc::new(query);
    match read_from(state, &state.search, turn, &query, conditions).await {
        Err(error @ (ApiError::Unavailable(_) | ApiError::Internal(_))) => match &state.stand_in {
            Some(stand_in) => {
                tracing::debug!(%error, "another search engine stands in");
                read_from(state, stand_in, turn, &query, conditions).await
            }
            None => Err(error),
        },
        answer => answer,
    }
}

async fn read_from(
    state: &BrowseState,
    engine: &Arc<dyn SearchIndex>,
    turn: &Turn,
    query: &Arc<SearchQuery>,
    conditions: &Conditions,
) -> Result<(Engine, JsonBody), ApiError> {
    let generation = engine.generation();
    let normal_form = serde_json::to_vec(&(engine.engine().as_str(), query.as_ref()))
        .map_err(|error| ApiError::Internal(error.into()))?;
    let key = CacheKey::list(&normal_form, generation);
    let fill = {
        let (engine, query) = (Arc::clone(engine), Arc::clone(query));
        move || search(engine, query, generation)
    };
    let body = state.answers.read_json(turn, key, conditions, fill).await?;
    let body = body.ok_or_else(|| ApiError::Internal(NoPage.into()))?;
    Ok((engine.engine(), body))
}

/// Every query has a page, even if it is empty.
#[derive(Debug, thiserror::Error)]
#[error("what is kept of a list is not a page")]
struct NoPage;

async fn search(
    engine: Arc<dyn SearchIndex>,
    query: Arc<SearchQuery>,
    generation: Generation,
) -> Result<CachedResponse, ReadError> {
    let page = engine.search(&query, generation).await?;
    let answer = ListAnswer::new(&page, query.page);
    Ok(JsonBody::render_sized(&answer, answer.expected_bytes())?.keep())
}
