//! `GET /packs/{ref}`: the chartsets of a pack of the second game.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::search::SearchQuery;
use chart_index_domain::{Chartset, PublicSource, ReadError, SourceKind, SourceRef};
use chart_index_http::{ApiError, CachePolicy, MediaType, PathParam, RequestHeaders, Resource};

use crate::PagesState;
use crate::filter_form::source_name;
use crate::format;
use crate::histogram::Histogram;
use crate::layout::Layout;
use crate::render::render;
use crate::set_view::{SetItem, SetView};

/// The maximum number of chartsets on a page: real packs have fewer.
const MAX_SETS: u32 = 1_000;

/// The maximum number of chartsets that are listed with their charts, which are most of a page.
const MAX_SETS_WITH_CHARTS: usize = 200;

/// `GET /packs/{ref}`.
pub(crate) async fn pack(
    State(state): State<Arc<PagesState>>,
    PathParam(text): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let number = text.parse().ok().and_then(SourceRef::from_number);
    let pack = number.filter(|pack| pack.as_str() == text).ok_or(ApiError::NotFound(Resource::Pack))?;
    let name = [b"pack ", text.as_bytes()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, pack).await;
    let body = state.read(&name, Resource::Pack, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

async fn read(state: &PagesState, pack: SourceRef) -> Result<Option<String>, ReadError> {
    let chartsets = state.store.chartsets_of_pack(&pack, MAX_SETS).await?;
    if chartsets.is_empty() {
        return Ok(None);
    }
    let ids: Vec<_> = chartsets.iter().take(MAX_SETS_WITH_CHARTS).map(|set| set.id).collect();
    let charts = state.store.charts_of_chartsets(&ids).await?;
    let listed = charts.iter().flat_map(|set| &set.charts);
    let histogram = Histogram::of_charts(listed.map(|listed| &listed.chart));
    let items = chartsets.iter().map(SetItem::of).collect::<Result<_, _>>()?;
    let sets = SetView::all(items, charts, Vec::new(), &SearchQuery::default());
    render(&PackTemplate::new(pack, &chartsets, sets, histogram, state)).map(Some)
}

pub(crate) fn path(pack: &SourceRef) -> String {
    format!("/packs/{pack}")
}

#[derive(Template)]
#[template(path = "pack.html", whitespace = "minimize")]
struct PackTemplate {
    layout: Layout,
    /// Such as `Beta pack 101`.
    name: String,
    facts: String,
    /// The URL of its page at the source.
    url: String,
    /// Of the difficulties of its charts.
    histogram: Option<Histogram>,
    sets: Vec<SetView>,
}

impl PackTemplate {
    fn new(
        pack: SourceRef,
        chartsets: &[Chartset],
        sets: Vec<SetView>,
        histogram: Option<Histogram>,
        state: &PagesState,
    ) -> Self {
        let name = format!("{} {pack}", source_name(SourceKind::BetaPack));
        let charts: u64 = chartsets.iter().map(|set| u64::from(set.chart_count)).sum();
        let facts = format!(
            "{}, {}",
            format::counted(chartsets.len() as u64, "set"),
            format::counted(charts, "chart")
        );
        let layout = Layout {
            description: format!("{name}: {facts}"),
            ..Layout::new(name.as_str(), path(&pack), state.settings.public_url.as_ref())
        };
        let source = PublicSource { kind: SourceKind::BetaPack, reference: pack };
        let url = state.source_pages.page_of(&source);
        Self { layout, name, facts, url, histogram, sets }
    }
}
