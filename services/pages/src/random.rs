//! `GET /random`: leads to any chartset that the filters admit.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_browse::choose_chartset;
use chart_index_http::ApiError;

use crate::PagesState;
use crate::list_page::see_other;
use crate::list_query::ListQuery;

/// `GET /random`, with the parameters of the list.
pub(crate) async fn random(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
) -> Result<Response, ApiError> {
    let query = ListQuery::parse(query_string.as_deref().unwrap_or_default())?.query.search;
    let id = choose_chartset(&state.engines, &state.cache, &query).await?;
    Ok(see_other(&format!("/chartsets/{id}")))
}
