//! `GET /embed/charts/{hash}`: the preview of a chart alone, for frames of other sites.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::{ChartPage, NoteHash, ReadError};
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, Resource};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::curve::Curve;
use crate::layout::Layout;
use crate::page_hash::PageHash;
use crate::render::render;

/// `GET /embed/charts/{hash}`. Its links open the page of the chart in a window of its own.
pub(crate) async fn embed(
    State(state): State<Arc<PagesState>>,
    PageHash(hash): PageHash,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let name = [b"embed ", hash.as_bytes().as_slice()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, hash).await;
    let body = state.read(&name, Resource::Chart, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

async fn read(state: &PagesState, hash: NoteHash) -> Result<Option<String>, ReadError> {
    let page = state.store.chart_page(hash).await?;
    page.map(|page| render(&EmbedTemplate::new(&page))).transpose()
}

#[derive(Template)]
#[template(path = "embed.html", whitespace = "minimize")]
struct EmbedTemplate {
    layout: Layout,
    hash: String,
    length_ms: u32,
    chart: ChartRow,
    curve: Curve,
}

impl EmbedTemplate {
    fn new(page: &ChartPage) -> Self {
        let (chart, numbers) = (&page.chart, &page.chart.numbers);
        let row = ChartRow::new(chart, None);
        Self {
            layout: Layout::not_indexed(format!("{} [{}]", row.title, row.difficulty)),
            hash: chart.hash.to_string(),
            length_ms: numbers.length_ms,
            curve: page.curve.as_ref().map(|curve| Curve::figure(curve, numbers)).unwrap_or_default(),
            chart: row,
        }
    }
}
