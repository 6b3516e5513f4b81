//! `GET /ratings`: the difficulties of the sets that the filters of a list find, for its histogram.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_browse::{ListRead, PageFormat, Search};
use chart_index_cache::{CacheKey, Filled};
use chart_index_domain::ReadError;
use chart_index_domain::search::RatingHistogram;
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, TextBody};

use crate::PagesState;
use crate::histogram::Histogram;
use crate::list_query::ParsedList;
use crate::render::render;

/// `GET /ratings`, with the parameters of the list: a part of a page, which scripts put into the list when
/// someone points at its histogram or focuses a field of it. A list that counted would be slower for everyone.
pub(crate) async fn ratings(
    State(state): State<Arc<PagesState>>,
    parsed: ParsedList,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let read = ListRead { cache: &state.cache, headers: &headers };
    let filters = parsed.query.of_any_difficulty().search.rated();
    let format = Arc::new(HistogramFormat(Arc::clone(&state)));
    let page = state.engines.read_page(read, filters, &format).await?;
    Ok(page.body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

struct HistogramFormat(Arc<PagesState>);

#[derive(Template)]
#[template(path = "ratings.html", whitespace = "minimize")]
struct RatingsTemplate {
    histogram: Histogram,
}

impl PageFormat for HistogramFormat {
    fn cache_key(&self, name: &[u8]) -> CacheKey {
        self.0.key(&[b"ratings ", name].concat())
    }

    async fn fill(&self, search: Search) -> Result<Filled, ReadError> {
        let RatingHistogram { chartsets, position } = search.rating_histogram().await?;
        let template = RatingsTemplate { histogram: Histogram::of_sets(&chartsets) };
        Ok(Filled { response: TextBody::new(render(&template)?).into_cached(), position })
    }
}
