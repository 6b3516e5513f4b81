//! The JSON bodies of lookups (docs/api.md, "Chart lookup" and "Variants").

use chart_index_domain::{Chart, ChartOccurrence, NoteHash, Source, VARIANT_VERSION, Variant, VariantTiming};
use chart_index_http::openapi::extension;
use chart_index_store::{ChartVariant, ChartVariants, KnownChart};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Array, ArrayBuilder, Ref};

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

/// The derive macro drops extensions of arrays.
pub(crate) fn chartsets_schema() -> Array {
    let items = Ref::from_schema_name(ChartOccurrence::name());
    ArrayBuilder::new().items(items).max_items(Some(8)).extensions(Some(extension())).build()
}

impl<'a> LookupBody<'a> {
    /// The body of a lookup without variants.
    pub(crate) fn new(hash: NoteHash, known: Option<&'a KnownChart>) -> Self {
        Self::of(Some(hash), known)
    }

    /// The body of a lookup with `include=variants`.
    pub(crate) fn with_variants(hash: Option<NoteHash>, found: &'a ChartVariants) -> Self {
        let (variants, variants_total) = (Some(variants(found)), Some(found.total));
        Self { variants, variants_total, ..Self::of(hash, found.known.as_ref()) }
    }

    /// The body of a lookup of a chart that is unknown and has no known hash.
    pub(crate) const fn unidentified() -> Self {
        Self::of(None, None)
    }

    const fn of(chart_hash: Option<NoteHash>, known: Option<&'a KnownChart>) -> Self {
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

#[cfg(test)]
mod tests {
    use chart_index_domain::{
        ChartMetadata, ChartNumbers, ChartValues, Confidence, KeyCount, SourceKind, SourceRef,
    };

    use super::*;

    const HASH: NoteHash = NoteHash::from_bytes([0x0f; 32]);

    fn known_chart() -> KnownChart {
        let numbers = ChartNumbers {
            keys: KeyCount::try_from(7).unwrap(),
            bpm_min: 87.5,
            bpm_max: 175.0,
            bpm_main: 174.999,
            length_ms: 92_000,
            notes: 1_234,
            density_avg: 13.413,
            density_peak: 24.0,
            ..ChartNumbers::default()
        };
        let metadata = ChartMetadata {
            title: "旋".into(),
            artist: "An \"artist\"".into(),
            difficulty: "7K Another".into(),
            ..ChartMetadata::default()
        };
        let values = ChartValues { numbers, rox_bytes: 4_096, ..ChartValues::default() };
        let chart = Chart::new(HASH, &values, &metadata);
        let source = |kind, number, confidence| Source {
            kind,
            reference: SourceRef::from_number(number).unwrap(),
            confidence,
            checked_at_ms: 1_790_000_000_000,
            url: None,
        };
        let sources = vec![
            source(SourceKind::BetaPack, 12, Confidence::Exact),
            source(SourceKind::AlphaSet, 577_617, Confidence::Declared),
        ];
        KnownChart { chart, sources, chartsets: Vec::new() }
    }

    fn json(known: Option<&KnownChart>) -> String {
        serde_json::to_string_pretty(&LookupBody::new(HASH, known)).unwrap()
    }

    #[test]
    fn known_chart_has_sources_and_chart() {
        insta::assert_snapshot!(json(Some(&known_chart())), @r#"
        {
          "chartHash": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
          "status": "known",
          "sources": [
            {
              "kind": "betaPack",
              "ref": "12",
              "confidence": "exact",
              "checkedAtMs": 1790000000000
            },
            {
              "kind": "alphaSet",
              "ref": "577617",
              "confidence": "declared",
              "checkedAtMs": 1790000000000
            }
          ],
          "ttlMs": 300000,
          "chart": {
            "hash": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
            "noteHashVersion": 1,
            "keys": 7,
            "bpmMin": 87.5,
            "bpmMax": 175.0,
            "bpmMain": 174.999,
            "lengthMs": 92000,
            "notes": 1234,
            "lns": 0,
            "densityAvg": 13.413,
            "densityPeak": 24.0,
            "roxBytes": 4096,
            "title": "旋",
            "artist": "An \"artist\"",
            "creator": "",
            "difficulty": "7K Another"
          }
        }
        "#);
    }

    #[test]
    fn unknown_chart_has_neither_sources_nor_chart() {
        insta::assert_snapshot!(json(None), @r#"
        {
          "chartHash": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
          "status": "unknown",
          "ttlMs": 300000
        }
        "#);
    }

    #[test]
    fn variants_follow_what_a_lookup_always_has() {
        let original = known_chart();
        let (variant, variant_version) = (Some(Variant::from_bytes([7; 32])), Some(VARIANT_VERSION));
        let chart = Chart { variant, variant_version, ..original.chart.clone() };
        let known = KnownChart { chart, sources: Vec::new(), chartsets: Vec::new() };
        let item = ChartVariant { known: original, rate: Some(1.1), timing: Some(VariantTiming::Uniform) };
        let without = ChartVariant { rate: None, timing: None, ..item.clone() };
        let found = ChartVariants { known: Some(known), items: vec![item, without], total: 21 };
        let json = serde_json::to_value(LookupBody::with_variants(Some(HASH), &found)).unwrap();
        assert_eq!(json["chart"]["variant"], "07".repeat(32));
        assert_eq!(json["chart"]["variantVersion"], 1);
        assert_eq!(json["variantsTotal"], 21);
        let expected = serde_json::json!({
            "hash": HASH, "title": "旋", "difficulty": "7K Another", "lengthMs": 92_000,
            "sources": found.items[0].known.sources, "rate": 1.1, "timing": "uniform",
        });
        assert_eq!(json["variants"][0], expected);
        assert!(json["variants"][1].get("rate").is_none() && json["variants"][1].get("timing").is_none());
        let unknown = ChartVariants { known: None, ..found };
        let json = serde_json::to_value(LookupBody::with_variants(Some(HASH), &unknown)).unwrap();
        assert_eq!((&json["status"], json["variants"].as_array().unwrap().len()), (&"unknown".into(), 2));
    }

    #[test]
    fn known_chart_without_sources_has_an_empty_array() {
        let known = KnownChart { sources: Vec::new(), ..known_chart() };
        assert!(json(Some(&known)).contains("\"sources\": []"));
    }
}
