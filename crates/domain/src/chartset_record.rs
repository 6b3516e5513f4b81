//! Records of chartsets: everything that an instance needs to give the same responses about them as the
//! instance that wrote the record.

use std::collections::HashSet;

use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bounded_lists::{deserialize_at_most, deserialize_first};
use crate::limits::MAX_CHARTS;
use crate::{
    ChartDraft, ChartMetadata, ChartNumbers, ChartValues, Chartset, ChartsetDraft, ChartsetId,
    ChartsetMember, ChartsetTooLarge, FileAliases, FileMd5, Keywords, NOTE_HASH_VERSION, NoteHash, Patterns,
    PublicSource, Rating, SourceKind, VARIANT_VERSION, Variant, assemble_chartset,
};

/// A shown chartset as the change feed and exports contain it (docs/formats/records.md, "Chartset record").
///
/// What the API derives from the charts is not part of it: title, artist and creator of the chartset, its
/// ranges, its source, and the lists of sources ([`assemble_chartset`],
/// [`Source::merge`](crate::Source::merge)). Nor is the time of the last check, since a check is no change.
///
/// Reading one takes memory in proportion to a chartset within the [limits](crate::limits), whatever else the
/// JSON has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartsetRecord {
    /// Stays the same when the charts change (docs/formats/records.md, "Chartsets and ids").
    pub id: ChartsetId,
    /// When the chartset last changed in the index, in Unix epoch milliseconds. Lists are ordered by it.
    pub updated_at_ms: i64,
    /// The set or pack that the charts were read from: their source with the confidence `exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exact_source: Option<PublicSource>,
    /// The charts, ordered by keys, then average density, then hash. At least one.
    #[serde(deserialize_with = "deserialize_at_most::<_, _, MAX_CHARTS>")]
    pub charts: Vec<ChartRecord>,
}

/// A chart in a [`ChartsetRecord`]: the fields of the Chart object, and what lists and searches use.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartRecord {
    /// Identifies the chart. A record contains each hash once.
    pub hash: NoteHash,
    /// The scheme of the hash: [`NOTE_HASH_VERSION`](crate::NOTE_HASH_VERSION).
    pub note_hash_version: u32,
    /// Key count, BPM, length, notes and densities, computed from the ROX file.
    #[serde(flatten)]
    pub numbers: ChartNumbers,
    /// Size of the ROX file in bytes.
    pub rox_bytes: u64,
    /// The metadata of the file in this chartset.
    #[serde(flatten)]
    pub metadata: ChartMetadata,
    /// The source that the metadata names, with the confidence `declared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub declared_source: Option<PublicSource>,
    /// The id of the chart in the first game; absent in a pack of the second game.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub alpha_beatmap_id: Option<u64>,
    /// The [variant](crate::Variant) of the notes, computed from the ROX file; absent if the chart has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub variant: Option<Variant>,
    /// The version of the variant: [`VARIANT_VERSION`](crate::VARIANT_VERSION); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub variant_version: Option<u8>,
    /// How hard the chart is to play, computed from the ROX file; absent if it is not rated. A record that was
    /// read has none: other instances may compute other versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rating: Option<Rating>,
    /// What the rows of the chart consist of, computed from the ROX file. A record that was read has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub patterns: Option<Patterns>,
    /// MD5 digests of `.osu` and `.qua` files with the chart in this chartset, earlier ones too; at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub md5s: Vec<FileMd5>,
    /// Variants of the chart with the heads of rolls in its files; at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roll_variants: Vec<Variant>,
}

/// A record that no instance writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    /// A shown chartset has charts.
    #[error("the chartset has no charts")]
    NoCharts,
    /// A chartset contains each note hash once.
    #[error("the chartset has chart {0} twice")]
    DuplicateChart(NoteHash),
    /// The hash is of another version of the scheme than that of this program.
    #[error(
        "chart {hash} has a note hash of version {version}; this program reads version {NOTE_HASH_VERSION}"
    )]
    NoteHashVersion {
        /// The hash as the record has it.
        hash: NoteHash,
        /// Its `noteHashVersion`.
        version: u32,
    },
    /// The id of a set of the first game follows from its source.
    #[error("the chartset has the id {id}, but its exactSource has {expected}")]
    OtherId {
        /// The id of the record.
        id: ChartsetId,
        /// The id that follows from the source.
        expected: ChartsetId,
    },
    /// The chartset exceeds a limit.
    #[error(transparent)]
    TooLarge(#[from] ChartsetTooLarge),
}

impl ChartsetRecord {
    /// The record of a chartset with these visible charts. `None` without charts: such a chartset is not shown.
    #[must_use]
    pub fn new(
        id: ChartsetId,
        updated_at_ms: i64,
        exact_source: Option<PublicSource>,
        mut members: Vec<ChartsetMember>,
    ) -> Option<Self> {
        assemble_chartset(id, exact_source.as_ref(), &mut members)?;
        let charts = members.into_iter().map(ChartRecord::new).collect();
        Some(Self { id, updated_at_ms, exact_source, charts })
    }

    /// The chartset and its keywords, as they follow from its charts. `None` without charts.
    #[must_use]
    pub fn assemble(&self) -> Option<(Chartset, Keywords)> {
        let mut members: Vec<_> = self.charts.iter().map(ChartRecord::to_member).collect();
        assemble_chartset(self.id, self.exact_source.as_ref(), &mut members)
    }

    /// The chartset to store. Its charts have no ROX files, and no path is known. Text is cleaned as that of a
    /// chart file.
    ///
    /// # Errors
    /// No instance writes such a record.
    pub fn into_draft(self) -> Result<ChartsetDraft, InvalidRecord> {
        if self.charts.is_empty() {
            return Err(InvalidRecord::NoCharts);
        }
        if let Some(PublicSource { kind: SourceKind::AlphaSet, reference }) = &self.exact_source {
            let (id, expected) = (self.id, ChartsetId::from_alpha_set(reference));
            if id != expected {
                return Err(InvalidRecord::OtherId { id, expected });
            }
        }
        let mut hashes = HashSet::with_capacity(self.charts.len());
        for chart in &self.charts {
            if chart.note_hash_version != NOTE_HASH_VERSION {
                let (hash, version) = (chart.hash, chart.note_hash_version);
                return Err(InvalidRecord::NoteHashVersion { hash, version });
            }
            if !hashes.insert(chart.hash) {
                return Err(InvalidRecord::DuplicateChart(chart.hash));
            }
        }
        let charts = self.charts.into_iter().map(ChartRecord::into_draft).collect();
        let Self { id, exact_source, .. } = self;
        let draft = ChartsetDraft { id, path: String::new(), exact_source, charts };
        draft.check_limits()?;
        Ok(draft)
    }
}

impl ChartRecord {
    fn new(member: ChartsetMember) -> Self {
        let ChartValues { numbers, variant, analysis, rox_bytes, .. } = member.values;
        Self {
            hash: member.hash,
            note_hash_version: NOTE_HASH_VERSION,
            numbers,
            rox_bytes,
            metadata: member.metadata,
            declared_source: member.declared_source,
            alpha_beatmap_id: member.alpha_beatmap_id,
            variant,
            variant_version: variant.map(|_| VARIANT_VERSION),
            rating: analysis.and_then(|analysis| analysis.rating),
            patterns: analysis.map(|analysis| analysis.patterns),
            md5s: member.aliases.md5s,
            roll_variants: member.aliases.roll_variants,
        }
    }

    /// Without what a record does not have, and without the file aliases.
    fn to_member(&self) -> ChartsetMember {
        let Self { numbers, variant, rox_bytes, .. } = *self;
        ChartsetMember {
            hash: self.hash,
            values: ChartValues { numbers, variant, analysis: None, rox_bytes, curve: None },
            metadata: self.metadata.clone(),
            declared_source: self.declared_source.clone(),
            alpha_beatmap_id: self.alpha_beatmap_id,
            aliases: FileAliases::default(),
        }
    }

    fn into_draft(self) -> ChartDraft {
        ChartDraft {
            hash: self.hash,
            numbers: self.numbers,
            // Those of the stored ROX file apply.
            variant: None,
            analysis: None,
            rox: None,
            curve: None,
            metadata: self.metadata.cleaned(),
            declared_source: self.declared_source,
            alpha_beatmap_id: self.alpha_beatmap_id,
            aliases: FileAliases::new(self.md5s, self.roll_variants),
        }
    }
}

/// The fields of a [`ChartRecord`] that are read, without the numbers and the metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtherFields {
    hash: NoteHash,
    note_hash_version: u32,
    rox_bytes: u64,
    declared_source: Option<PublicSource>,
    alpha_beatmap_id: Option<u64>,
    variant: Option<Variant>,
    variant_version: Option<u8>,
    #[serde(default, deserialize_with = "deserialize_first::<_, _, { FileAliases::MAX_VALUES }>")]
    md5s: Vec<FileMd5>,
    #[serde(default, deserialize_with = "deserialize_first::<_, _, { FileAliases::MAX_VALUES }>")]
    roll_variants: Vec<Variant>,
}

/// Reads each part from the same text: serde would store every unknown field of a structure with flattened
/// parts.
impl<'de> Deserialize<'de> for ChartRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let other: OtherFields = read_part(&json)?;
        Ok(Self {
            hash: other.hash,
            note_hash_version: other.note_hash_version,
            numbers: read_part(&json)?,
            rox_bytes: other.rox_bytes,
            metadata: read_part(&json)?,
            declared_source: other.declared_source,
            alpha_beatmap_id: other.alpha_beatmap_id,
            variant: other.variant,
            variant_version: other.variant_version,
            rating: None,
            patterns: None,
            md5s: other.md5s,
            roll_variants: other.roll_variants,
        })
    }
}

fn read_part<T: DeserializeOwned, E: de::Error>(json: &RawValue) -> Result<T, E> {
    serde_json::from_str(json.get()).map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyCount, MAX_CHART_TAGS, SourceRef};

    fn member(hash: u8, title: &str) -> ChartsetMember {
        let numbers = ChartNumbers {
            bpm_min: 174.999,
            bpm_main: 0.1 + 0.2,
            keys: KeyCount::try_from(7).unwrap(),
            lns: 10,
            density_avg: 1.667,
            ..ChartNumbers::default()
        };
        let variant = Some(Variant::from_bytes([hash; 32]));
        ChartsetMember {
            hash: NoteHash::from_bytes([hash; 32]),
            values: ChartValues { numbers, variant, rox_bytes: 1234, ..ChartValues::default() },
            metadata: ChartMetadata { title: title.into(), ..ChartMetadata::default() },
            declared_source: None,
            alpha_beatmap_id: Some(7),
            aliases: FileAliases::new(vec![FileMd5::from_bytes([hash; 16])], Vec::new()),
        }
    }

    fn source(kind: SourceKind) -> PublicSource {
        PublicSource { kind, reference: SourceRef::from_number(12).unwrap() }
    }

    fn record(kind: SourceKind) -> ChartsetRecord {
        let mut romanised = member(2, "未来");
        romanised.metadata.title_romanised = Some("Mirai".into());
        romanised.metadata.tags = vec!["a".into(), "b \"c\"".into()];
        romanised.declared_source = Some(source(SourceKind::AlphaSet));
        let members = vec![romanised, member(1, "first")];
        let id = ChartsetId::from_alpha_set(&SourceRef::from_number(12).unwrap());
        ChartsetRecord::new(id, 5, Some(source(kind)), members).unwrap()
    }

    #[test]
    fn record_is_read_as_it_was_written() {
        let record = record(SourceKind::AlphaSet);
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<ChartsetRecord>(&json).unwrap(), record);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["exactSource"], serde_json::json!({"kind": "alphaSet", "ref": "12"}));
        let titles: Vec<_> =
            value["charts"].as_array().unwrap().iter().map(|chart| &chart["title"]).collect();
        assert_eq!(titles, ["first", "未来"]);
        let (chartset, keywords) = record.assemble().unwrap();
        assert_eq!((chartset.title.as_str(), chartset.source), ("first", record.exact_source));
        assert_eq!(keywords.romanised_names, ["Mirai"]);
        assert!(value["charts"][0].get("titleRomanised").is_none(), "no field is null");
    }

    #[test]
    fn ratings_are_written_and_not_read() {
        let record = record(SourceKind::AlphaSet);
        let mut rated = record.clone();
        rated.charts[0].rating = Rating::from_hundredths(527);
        rated.charts[0].patterns = Some(Patterns::default());
        let json = serde_json::to_string(&rated).unwrap();
        assert!(json.contains(r#""rating":{"algorithm":"alphaStars","version":1,"value":5.27}"#), "{json}");
        let later = json.replace(r#"{"algorithm":"alphaStars","#, r#"{"algorithm":"other","further":[],"#);
        for json in [json, later.replace(r#""rows":{}"#, r#""rows":[7]"#)] {
            assert_eq!(serde_json::from_str::<ChartsetRecord>(&json).unwrap(), record);
        }
    }

    #[test]
    fn malformed_values_are_rejected() {
        let json = serde_json::to_string(&record(SourceKind::AlphaSet)).unwrap();
        for (valid, malformed) in [
            (r#""id":""#, r#""id":"0"#),
            (r#""keys":7"#, r#""keys":8"#),
            (r#""ref":"12""#, r#""ref":"012""#),
            (r#""ref":"12""#, r#""ref":"0""#),
            (r#""kind":"alphaSet""#, r#""kind":"gammaSet""#),
            (r#""lns":10"#, r#""lns":-1"#),
        ] {
            assert!(json.contains(valid), "{valid}");
            let malformed = json.replace(valid, malformed);
            assert!(serde_json::from_str::<ChartsetRecord>(&malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn records_that_no_instance_writes_are_refused() {
        let valid = record(SourceKind::AlphaSet);
        assert_eq!(valid.clone().into_draft().unwrap().charts.len(), 2);
        let without = ChartsetRecord { charts: Vec::new(), ..valid.clone() };
        assert_eq!(without.into_draft(), Err(InvalidRecord::NoCharts));
        let mut twice = valid.clone();
        twice.charts.push(twice.charts[0].clone());
        assert_eq!(twice.into_draft(), Err(InvalidRecord::DuplicateChart(NoteHash::from_bytes([1; 32]))));
        let mut newer = valid.clone();
        newer.charts[0].note_hash_version = 2;
        let hash = newer.charts[0].hash;
        assert_eq!(newer.into_draft(), Err(InvalidRecord::NoteHashVersion { hash, version: 2 }));
        let (id, expected) = (ChartsetId::from_bytes([9; 8]), valid.id);
        let other = ChartsetRecord { id, ..valid.clone() };
        assert_eq!(other.clone().into_draft(), Err(InvalidRecord::OtherId { id, expected }));
        // The name of the song folder, from which the id of a pack follows too, is not in the record.
        let pack = ChartsetRecord { exact_source: Some(source(SourceKind::BetaPack)), ..other };
        assert!(pack.into_draft().is_ok());
        let mut large = valid;
        let chart =
            |number: u8| ChartRecord { hash: NoteHash::from_bytes([number; 32]), ..large.charts[0].clone() };
        large.charts = (0..=200).map(chart).collect();
        for (number, chart) in large.charts.iter_mut().enumerate() {
            chart.metadata.creator = number.to_string();
        }
        assert!(matches!(large.into_draft(), Err(InvalidRecord::TooLarge(_))));
    }

    #[test]
    fn text_of_records_is_cleaned() {
        let mut record = record(SourceKind::AlphaSet);
        record.charts[0].metadata.title = format!(" a\u{7}\n{}", "x".repeat(5_000));
        let draft = record.into_draft().unwrap();
        assert_eq!(draft.charts[0].metadata.title, format!("a {}", "x".repeat(998)));
    }

    #[test]
    fn lists_are_bounded_while_they_are_read() {
        let valid = record(SourceKind::AlphaSet);
        let json = serde_json::to_string(&valid).unwrap();
        let tags = vec!["tag"; MAX_CHART_TAGS + 1];
        let many = json.replace(r#"["a","b \"c\""]"#, &serde_json::to_string(&tags).unwrap());
        let read: ChartsetRecord = serde_json::from_str(&many).unwrap();
        assert_eq!(read.charts[1].metadata.tags.len(), MAX_CHART_TAGS);
        let chart = &valid.charts[0];
        for (count, is_valid) in [(MAX_CHARTS, true), (MAX_CHARTS + 1, false)] {
            let record = ChartsetRecord { charts: vec![chart.clone(); count], ..valid.clone() };
            let read = serde_json::from_str::<ChartsetRecord>(&serde_json::to_string(&record).unwrap());
            assert_eq!(read.is_ok(), is_valid, "{count}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_ignored() {
        let record = record(SourceKind::AlphaSet);
        let json = serde_json::to_string(&record).unwrap().replace(r#""lns":10"#, r#""lns":10,"later":[{}]"#);
        assert_eq!(serde_json::from_str::<ChartsetRecord>(&json).unwrap(), record);
    }
}
