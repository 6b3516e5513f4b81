//! `GET /chartsets/{id}`: a chartset.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::{ChartsetChart, ChartsetDetail, ChartsetId, ReadError};
use chart_index_http::{ApiError, CachePolicy, ChartsetIdParam, MediaType, RequestHeaders, Resource};

use crate::PagesState;
use crate::bpm::Bpm;
use crate::chart_rows::ChartRow;
use crate::creators::{CreatorLink, MAX_FILTER_CHARACTERS};
use crate::format::named;
use crate::layout::Layout;
use crate::list_query::escape;
use crate::render::render;
use crate::sources::SourceLine;
use crate::structured_data::StructuredData;
use crate::{creators, format, level};

/// `GET /chartsets/{id}`.
pub(crate) async fn chartset(
    State(state): State<Arc<PagesState>>,
    ChartsetIdParam(id): ChartsetIdParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let name = [b"chartset ", id.as_bytes().as_slice()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, id).await;
    let body = state.read(&name, Resource::Chartset, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

async fn read(state: &PagesState, id: ChartsetId) -> Result<Option<String>, ReadError> {
    let detail = state.store.chartset(id).await?;
    detail.map(|detail| render(&ChartsetTemplate::new(&detail, state))).transpose()
}

#[derive(Template)]
#[template(path = "chartset.html", whitespace = "minimize")]
struct ChartsetTemplate {
    layout: Layout,
    title: String,
    artist: String,
    creators: Vec<CreatorLink>,
    bpm: Bpm,
    length: String,
    chart_count: String,
    download: Option<String>,
    charts: Vec<ChartRow>,
    tags: Vec<TagLink>,
    sources: Vec<SourceLine>,
}

struct TagLink {
    name: String,
    href: String,
}

impl ChartsetTemplate {
    fn new(detail: &ChartsetDetail, state: &PagesState) -> Self {
        let set = &detail.chartset;
        let (title, artist) =
            (named(set.title.clone(), "Untitled"), named(set.artist.clone(), "Unknown artist"));
        let bpm = Bpm::of_charts((set.bpm_min, set.bpm_max), detail.charts.iter().map(|entry| &entry.chart));
        let length = format::length_range(set.length_min_ms, set.length_max_ms);
        let chart_count = format::counted(set.chart_count.into(), "chart");
        let path = format!("/chartsets/{}", set.id);
        let mut layout = Layout {
            description: format!(
                "{title} by {artist}{}: {} BPM, {length}, {chart_count}",
                format::charted_by(&set.creator),
                bpm.main
            ),
            json: Some(format!("/api{path}")),
            ..Layout::new(
                format::artist_and_title(&set.artist, &title),
                path,
                state.settings.public_url.as_ref(),
            )
        };
        layout.structured_data = Some(StructuredData::chartset(set, &layout.title, &layout.url()));
        Self {
            layout,
            title,
            artist,
            creators: creators::links(
                &set.creator,
                detail.charts.iter().map(|entry| entry.chart.creator.as_str()),
            ),
            bpm,
            length,
            chart_count,
            download: set.source.as_ref().map(|_| format!("/go/chartset/{}", set.id)),
            charts: chart_rows(detail),
            tags: detail.tags.iter().map(|tag| TagLink::new(tag)).collect(),
            sources: SourceLine::all(&detail.sources, &state.source_pages),
        }
    }
}

/// The charts in the order of [`level::order`], then in that of the detail.
fn chart_rows(detail: &ChartsetDetail) -> Vec<ChartRow> {
    let mut charts: Vec<&ChartsetChart> = detail.charts.iter().collect();
    charts.sort_by(|a, b| level::order(&a.chart, &b.chart));
    charts.iter().map(|entry| ChartRow::new(&entry.chart, entry.curve.as_ref())).collect()
}

impl TagLink {
    fn new(name: &str) -> Self {
        let searched: String = name.chars().take(MAX_FILTER_CHARACTERS).collect();
        Self { name: name.to_owned(), href: format!("/?q={}", escape(searched.trim())) }
    }
}
