//! `GET /random`: leads to any chartset that the filters admit.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_browse::{ListRead, PageFormat, Search};
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::{ChartsetPage, PageRequest, SearchQuery};
use chart_index_domain::{ChartsetId, ReadError};
use chart_index_http::{ApiError, RequestHeaders, Resource, TextBody};

use crate::PagesState;
use crate::list_page::see_other;
use crate::list_query::ListQuery;
use crate::set_view::SetItem;

/// `GET /random`. Every chartset of the list is equally likely: the list with one set a page has any page.
pub(crate) async fn random(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
) -> Result<Response, ApiError> {
    let query = ListQuery::parse(query_string.as_deref().unwrap_or_default())?.query.search;
    let first = choose(&state, &query, 1).await?;
    let number = fastrand::u64(1..=first.total.max(1));
    let chosen = if number == 1 { first } else { choose(&state, &query, number).await? };
    let id = chosen.id.ok_or(ApiError::NotFound(Resource::AnyChartset))?;
    Ok(see_other(&format!("/chartsets/{id}")))
}

/// A chartset of the list by its position.
struct Choice {
    total: u64,
    id: Option<String>,
}

async fn choose(state: &PagesState, query: &SearchQuery, number: u64) -> Result<Choice, ApiError> {
    let page = PageRequest::clamped(i64::try_from(number).unwrap_or(i64::MAX), 1);
    let query = SearchQuery { page, after: None, ..query.clone() };
    let headers = RequestHeaders::default();
    let read = ListRead { cache: &state.cache, headers: &headers };
    let page = state.engines.read_page(read, query, &Arc::new(ChoiceFormat)).await?;
    Ok(Choice::parse(page.body.bytes()))
}

impl Choice {
    /// Reads `<total> <id>`.
    fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (total, id) = text.split_once(' ').unwrap_or((&text, ""));
        let id = id.parse::<ChartsetId>().ok().map(|id| id.to_string());
        Self { total: total.parse().unwrap_or(0), id }
    }
}

/// The total of the list, and the id of the first chartset of the page.
struct ChoiceFormat;

impl PageFormat for ChoiceFormat {
    fn cache_key(name: &[u8]) -> CacheKey {
        CacheKey::page(&[b"choice ", name].concat())
    }

    async fn render(&self, _search: Search, page: ChartsetPage) -> Result<CachedResponse, ReadError> {
        let first = page.items.first().map(SetItem::read).transpose()?;
        let id = first.and_then(|item| item.id()).map(|id| id.to_string()).unwrap_or_default();
        Ok(TextBody::new(format!("{} {id}", page.total)).into_cached())
    }
}
