//! The JSON bodies of lookups (docs/api.md, "Chart lookup" and "Variants").

use chart_index_domain::{Chart, ChartOccurrence, NoteHash, Source, VARIANT_VERSION, Variant, VariantTiming};
use chart_index_http::openapi::chartsets_schema;
use chart_index_store::{ChartVariant, ChartVariants, KnownChart};
use serde::Serialize;
use utoipa::ToSchema;

/// How long a client may cache a response, in milliseconds. Equals the `max-age` of `CachePolicy::Lookup`.
const TTL_MS: u32 = 300_000;

const NO_CHARTSETS: &[ChartOccurrence] = &[];

/// The body of a lookup. For an unknown chart it has neither `sources` nor `chart`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LookupBody<'a> {
    /// `None` only in an item of a batch whose chart was not requested by its hash and is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    chart_hash: Option<NoteHash>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<&'a [Source]>,
    ttl_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<&'a Chart>,
    /// Only with `include=chartsets`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    chartsets: &'a [ChartOccurrence],
    /// Only with `include=variants`.
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<VariantBody<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants_total: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    Known,
    Unknown,
}

/// The body of the charts of a variant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VariantCharts)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VariantChartsBody<'a> {
    variant: Variant,
    variant_version: u8,
    #[schema(max_items = 20)]
    items: Vec<VariantBody<'a>>,
    total: u64,
    ttl_ms: u32,
}

/// A chart with a variant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChartVariant)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VariantBody<'a> {
    hash: NoteHash,
    title: &'a str,
    difficulty: &'a str,
    length_ms: u32,
    sources: &'a [Source],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    timing: Option<VariantTiming>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, schema_with = chartsets_schema)]
    chartsets: &'a [ChartOccurrence],
}

impl<'a> LookupBody<'a> {
    /// The body of a lookup with `include=variants`.
    pub(crate) fn with_variants(hash: Option<NoteHash>, found: &'a ChartVariants) -> Self {
        let (variants, variants_total) = (Some(variants(found)), Some(found.total));
        Self { variants, variants_total, ..Self::new(hash, found.known.as_ref()) }
    }

    /// The body of a lookup without variants; without a hash, that of a chart with no known hash.
    pub(crate) const fn new(chart_hash: Option<NoteHash>, known: Option<&'a KnownChart>) -> Self {
        let (status, sources, chart, chartsets) = match known {
            Some(KnownChart { chart, sources, chartsets }) => {
                (Status::Known, Some(sources.as_slice()), Some(chart), chartsets.as_slice())
            }
            None => (Status::Unknown, None, None, NO_CHARTSETS),
        };
        let (variants, variants_total) = (None, None);
        Self { chart_hash, status, sources, ttl_ms: TTL_MS, chart, chartsets, variants, variants_total }
    }
}

impl<'a> VariantChartsBody<'a> {
    pub(crate) fn new(variant: Variant, found: &'a ChartVariants) -> Self {
        let (items, total) = (variants(found), found.total);
        Self { variant, variant_version: VARIANT_VERSION, items, total, ttl_ms: TTL_MS }
    }
}

fn variants(found: &ChartVariants) -> Vec<VariantBody<'_>> {
    found.items.iter().map(VariantBody::new).collect()
}

impl<'a> VariantBody<'a> {
    fn new(item: &'a ChartVariant) -> Self {
        let ChartVariant { known: KnownChart { chart, sources, chartsets }, rate, timing } = item;
        Self {
            hash: chart.hash,
            title: &chart.title,
            difficulty: &chart.difficulty,
            length_ms: chart.numbers.length_ms,
            sources,
            rate: *rate,
            timing: *timing,
            chartsets,
        }
    }
}
