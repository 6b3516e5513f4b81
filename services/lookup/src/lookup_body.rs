//! The JSON body of a chart lookup (docs/api.md, "Chart lookup").

use chart_index_domain::{Chart, NoteHash, Source};
use chart_index_store::KnownChart;
use serde::Serialize;
use utoipa::ToSchema;

/// How long a client may cache a response, in milliseconds. Equals the `max-age` of `CachePolicy::Lookup`.
const TTL_MS: u32 = 300_000;

/// The body of a lookup. For an unknown chart it has neither `sources` nor `chart`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChartLookup)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LookupBody<'a> {
    chart_hash: NoteHash,
    #[schema(inline)]
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sources: Option<&'a [Source]>,
    ttl_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    chart: Option<&'a Chart>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum Status {
    Known,
    Unknown,
}

impl<'a> LookupBody<'a> {
    pub(crate) fn new(hash: NoteHash, known: Option<&'a KnownChart>) -> Self {
        Self {
            chart_hash: hash,
            status: if known.is_some() { Status::Known } else { Status::Unknown },
            sources: known.map(|known| known.sources.as_slice()),
            ttl_ms: TTL_MS,
            chart: known.map(|known| &known.chart),
        }
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{ChartNumbers, Confidence, KeyCount, NOTE_HASH_VERSION, SourceKind, SourceRef};

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
            lns: 56,
            density_avg: 13.413,
            density_peak: 24.0,
        };
        let chart = Chart {
            hash: HASH,
            note_hash_version: NOTE_HASH_VERSION,
            numbers,
            rox_bytes: 4_096,
            title: "旋".into(),
            artist: "An \"artist\"".into(),
            creator: String::new(),
            difficulty: "7K Another".into(),
        };
        let source = |kind, number, confidence| Source {
            kind,
            reference: SourceRef::from_number(number).unwrap(),
            confidence,
            checked_at_ms: 1_790_000_000_000,
        };
        let sources = vec![
            source(SourceKind::BetaPack, 12, Confidence::Exact),
            source(SourceKind::AlphaSet, 577_617, Confidence::Declared),
        ];
        KnownChart { chart, sources }
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
            "lns": 56,
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
    fn known_chart_without_sources_has_an_empty_array() {
        let known = KnownChart { sources: Vec::new(), ..known_chart() };
        assert!(json(Some(&known)).contains("\"sources\": []"));
    }
}
