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
    use super::*;
    use crate::tests::{detail, without_source};
    use chart_index_domain::search::{ListPosition, SortValue, parse_query_string};

    fn query(query_string: &str) -> SearchQuery {
        parse_query_string(query_string).unwrap()
    }

    fn pretty(value: &impl Serialize) -> String {
        serde_json::to_string_pretty(value).unwrap()
    }

    #[test]
    fn list_has_items_total_and_the_clamped_page() {
        let [one, other] =
            [detail(), without_source()].map(|detail| ListItem::new(&detail.chartset).unwrap());
        let expected =
            format!(r#"{{"items":[{},{}],"total":62,"page":2,"perPage":60}}"#, one.as_str(), other.as_str());
        let next = Some(ListPosition { value: SortValue::Integer(7), id: detail().chartset.id });
        let page = ChartsetPage { items: vec![one, other], total: 62, next, position: None };
        let list = query("page=2&perPage=500");
        let body = ListBody::new(&page, &list);
        assert_eq!(serde_json::to_string(&body).unwrap(), expected);
        assert!((expected.len()..expected.len() + 96).contains(&body.capacity()));
        let longest = ChartsetPage { items: Vec::new(), total: u64::MAX, ..page };
        let list = query("page=99999999999&perPage=60");
        let body = ListBody::new(&longest, &list);
        assert!(serde_json::to_string(&body).unwrap().len() <= body.capacity());
        let list = query("after=start");
        let body = ListBody::new(&longest, &list);
        let json = serde_json::to_string(&body).unwrap();
        assert!(
            json.ends_with(r#","page":1,"perPage":30,"nextAfter":"AQABAAAAAqGhoaGhoaGhAAAAAAAAAAc"}"#),
            "{json}"
        );
        assert!(json.len() <= body.capacity());
    }

    #[test]
    fn hints_are_only_in_lists_that_have_some() {
        let page = ChartsetPage { items: Vec::new(), total: 0, next: None, position: None };
        let list = query("query=keys%3D9+a");
        let body = ListBody::new(&page, &list);
        let json = serde_json::to_string(&body).unwrap();
        assert!(json.len() <= body.capacity(), "{json}");
        insta::assert_snapshot!(pretty(&body), @r#"
        {
          "items": [],
          "total": 0,
          "page": 1,
          "perPage": 30,
          "hints": [
            {
              "token": "keys=9",
              "reason": "accepts key counts from 4 to 7, as in keys=4,7 or keys>=6"
            }
          ]
        }
        "#);
    }

    #[test]
    fn extension_fields_are_in_charts_that_have_them_if_requested() {
        let mut detail = detail();
        let chart = |detail: &ChartsetDetail, include: &str| {
            let include = Include::of_query(&format!("include={include}"), FieldGroup::OF_DETAILS).unwrap();
            let mut detail = detail.clone();
            include.retain(&mut detail.charts[0].chart);
            let known = HashMap::new();
            serde_json::to_value(DetailBody::new(&detail, &known, include)).unwrap()["charts"][0]["chart"]
                .clone()
        };
        let plain = chart(&detail, "");
        for (include, fields) in [
            ("variants", &["variant", "variantVersion"][..]),
            ("rating", &["rating"]),
            ("patterns", &["patterns"]),
            ("patterns,rating", &["rating", "patterns"]),
        ] {
            let mut extended = chart(&detail, include);
            for field in fields {
                assert!(extended.as_object_mut().unwrap().remove(*field).is_some(), "{include}: {field}");
            }
            assert_eq!(extended, plain, "{include}");
        }
        Include::default().retain(&mut detail.charts[0].chart);
        assert_eq!(chart(&detail, "variants,rating,patterns"), plain);
    }

    #[test]
    fn detail_has_the_list_item_tags_sources_and_charts() {
        let mut detail = detail();
        Include::default().retain(&mut detail.charts[0].chart);
        let known = HashMap::new();
        insta::assert_snapshot!(pretty(&DetailBody::new(&detail, &known, Include::default())), @r#"
        {
          "id": "a1a1a1a1a1a1a1a1",
          "title": "旋",
          "artist": "An artist",
          "creator": "zoe, amy",
          "sourceKind": "alphaSet",
          "keys": [
            4
          ],
          "bpmMin": 87.5,
          "bpmMax": 175.0,
          "lengthMinMs": 92000,
          "lengthMaxMs": 92000,
          "densityMax": 24.0,
          "chartCount": 1,
          "downloadUrl": "/go/chartset/a1a1a1a1a1a1a1a1",
          "tags": [
            "piano",
            "旋"
          ],
          "sources": [
            {
              "kind": "alphaSet",
              "ref": "577617",
              "confidence": "exact",
              "checkedAtMs": 1790000000000
            }
          ],
          "charts": [
            {
              "chart": {
                "hash": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
                "noteHashVersion": 1,
                "keys": 4,
                "bpmMin": 87.5,
                "bpmMax": 175.0,
                "bpmMain": 175.0,
                "lengthMs": 92000,
                "notes": 1234,
                "lns": 0,
                "densityAvg": 13.413,
                "densityPeak": 24.0,
                "roxBytes": 4096,
                "title": "旋",
                "artist": "An artist",
                "creator": "zoe",
                "difficulty": "4K Another"
              },
              "difficulty": "4K Another",
              "alphaBeatmapId": 1224255
            }
          ]
        }
        "#);
    }

    #[test]
    fn detail_without_a_source_has_no_source_fields() {
        let detail = pretty(&DetailBody::new(&without_source(), &HashMap::new(), Include::default()));
        for field in ["sourceKind", "downloadUrl", "alphaBeatmapId", "null"] {
            assert!(!detail.contains(field), "{field}: {detail}");
        }
        assert!(detail.contains("\"sources\": []") && detail.contains("\"tags\": []"), "{detail}");
    }
}
