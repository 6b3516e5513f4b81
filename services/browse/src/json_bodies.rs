//! The JSON bodies of the list and the detail (docs/api.md, "Chartset list" and "Chartset detail").

use std::collections::HashMap;

use chart_index_domain::search::{ChartsetPage, Hint, ListItem, SearchQuery};
use chart_index_domain::{Chart, ChartOccurrence, Chartset, ChartsetChart, ChartsetDetail, NoteHash, Source};
use chart_index_http::openapi::extension;
use chart_index_http::{FieldGroup, Include};
use chart_index_store::KnownChart;
use serde::Serialize;
use utoipa::openapi::schema::{Array, ArrayBuilder, Ref};
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = hints_schema)]
    hints: Vec<HintBody<'a>>,
}

/// The derive macro drops extensions of arrays.
fn hints_schema() -> Array {
    ArrayBuilder::new().items(HintBody::schema()).extensions(Some(extension())).build()
}

/// A part of `query` that was searched for as text, although it looks like a filter.
#[derive(Debug, Serialize, ToSchema)]
struct HintBody<'a> {
    token: &'a str,
    reason: &'a str,
}

impl<'a> From<&'a Hint> for HintBody<'a> {
    fn from(Hint { token, reason }: &'a Hint) -> Self {
        Self { token, reason }
    }
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
            hints: query.hints.iter().map(HintBody::from).collect(),
        }
    }

    /// The capacity to reserve: the length of the JSON, or a few bytes more.
    pub(crate) fn capacity(&self) -> usize {
        /// `{"items":[…],"total":…,"page":…,"perPage":…}` with the longest numbers.
        const ENVELOPE: usize = 96;
        const COMMA: usize = 1;
        /// `,"nextAfter":"…"`.
        const NEXT: usize = 15;
        /// `,"hints":[]`.
        const HINTS: usize = 11;
        /// `{"token":"…","reason":"…"},`
        const HINT: usize = 26;
        let next = self.next_after.as_ref().map_or(0, |cursor| NEXT + cursor.len());
        let hints = self.hints.iter().map(|hint| HINT + hint.token.len() + hint.reason.len());
        let hints = if self.hints.is_empty() { 0 } else { HINTS + hints.sum::<usize>() };
        ENVELOPE + next + hints + self.items.iter().map(|item| item.as_str().len() + COMMA).sum::<usize>()
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

fn chartsets_schema() -> Array {
    let items = Ref::from_schema_name(ChartOccurrence::name());
    ArrayBuilder::new().items(items).max_items(Some(8)).extensions(Some(extension())).build()
}

impl<'a> From<&'a ChartsetChart> for ChartEntry<'a> {
    fn from(ChartsetChart { chart, alpha_beatmap_id, .. }: &'a ChartsetChart) -> Self {
        Self { chart, difficulty: &chart.difficulty, alpha_beatmap_id: *alpha_beatmap_id, chartsets: &[] }
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::ChartsetId;
    use chart_index_domain::search::{ListPosition, SortValue, parse_query_string};

    use super::*;

    #[test]
    fn capacity_is_the_length_or_a_little_more() {
        let item: ListItem = serde_json::from_str(r#"{"id":"a1a1a1a1a1a1a1a1"}"#).unwrap();
        let next = ListPosition { value: SortValue::Integer(7), id: ChartsetId::from_bytes([0xa1; 8]) };
        let page = ChartsetPage { items: vec![item; 2], total: 62, next: Some(next), position: None };
        let longest = ChartsetPage { items: Vec::new(), total: u64::MAX, ..page.clone() };
        for (page, query_string) in [
            (&page, "page=2&perPage=60"),
            (&longest, "page=99999999999&perPage=60"),
            (&longest, "after=start"),
            (&longest, "query=keys%3D9+a"),
        ] {
            let query = parse_query_string(query_string).unwrap();
            let body = ListBody::new(page, &query);
            let (length, capacity) = (serde_json::to_string(&body).unwrap().len(), body.capacity());
            assert!((length..length + 96).contains(&capacity), "{query_string}: {capacity} for {length}");
        }
    }
}
