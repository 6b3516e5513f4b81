//! The JSON bodies of the list and the detail (docs/api.md, "Chartset list" and "Chartset detail").

use std::collections::HashMap;

use chart_index_domain::search::{ChartsetPage, Hint, ListItem, SearchQuery};
use chart_index_domain::{Chart, ChartOccurrence, Chartset, ChartsetChart, ChartsetDetail, NoteHash, Source};
use chart_index_http::openapi::{chartsets_schema, extension};
use chart_index_http::{FieldGroup, Include};
use chart_index_store::KnownChart;
use serde::Serialize;
use utoipa::openapi::schema::{Array, ArrayBuilder};
use utoipa::{PartialSchema as _, ToSchema};

/// One page of the list, with its number and size after clamping.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChartsetList)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListBody<'a> {
    #[schema(value_type = Vec<Chartset>, max_items = 60)]
    items: &'a [ListItem],
    total: u64,
    page: u32,
    per_page: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    next_after: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, schema_with = hints_schema)]
    hints: &'a [Hint],
}

/// The derive macro drops extensions of arrays.
fn hints_schema() -> Array {
    ArrayBuilder::new().items(Hint::schema()).extensions(Some(extension())).build()
}

impl<'a> ListBody<'a> {
    pub(crate) fn new(page: &'a ChartsetPage, query: &'a SearchQuery) -> Self {
        let next = page.next.as_ref().filter(|_| query.after.is_some());
        Self {
            items: &page.items,
            total: page.total,
            page: query.page.number(),
            per_page: query.page.size(),
            next_after: next.map(|position| query.cursor_after(position)),
            hints: &query.hints,
        }
    }
}

/// The detail of a chartset: the fields of a list item and more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChartsetDetail)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DetailBody<'a> {
    #[serde(flatten)]
    item: &'a Chartset,
    /// Only with `include=updated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    updated_at_ms: Option<i64>,
    tags: &'a [String],
    sources: &'a [Source],
    charts: Vec<ChartEntry<'a>>,
}

impl<'a> DetailBody<'a> {
    /// The charts and sources of the detail have the extension fields that are requested. The chartsets of its
    /// charts are those of `known`.
    pub(crate) fn new(
        detail: &'a ChartsetDetail,
        known: &'a HashMap<NoteHash, KnownChart>,
        include: Include,
    ) -> Self {
        let entry = |entry: &'a ChartsetChart| {
            let chartsets = known.get(&entry.chart.hash).map(|known| known.chartsets.as_slice());
            ChartEntry { chartsets: chartsets.unwrap_or_default(), ..ChartEntry::from(entry) }
        };
        Self {
            item: &detail.chartset,
            updated_at_ms: include.has(FieldGroup::Updated).then_some(detail.updated_at_ms),
            tags: &detail.tags,
            sources: &detail.sources,
            charts: detail.charts.iter().map(entry).collect(),
        }
    }
}

/// A chart of the chartset, with its difficulty name in this set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChartsetChart)]
#[serde(rename_all = "camelCase")]
struct ChartEntry<'a> {
    chart: &'a Chart,
    difficulty: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alpha_beatmap_id: Option<u64>,
    /// Only with `include=chartsets`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, schema_with = chartsets_schema)]
    chartsets: &'a [ChartOccurrence],
}

impl<'a> From<&'a ChartsetChart> for ChartEntry<'a> {
    fn from(ChartsetChart { chart, alpha_beatmap_id, .. }: &'a ChartsetChart) -> Self {
        Self { chart, difficulty: &chart.difficulty, alpha_beatmap_id: *alpha_beatmap_id, chartsets: &[] }
    }
}
