//! A chart: its numbers, its metadata, and the Chart object of the API, which has both.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bounded_lists::deserialize_first;
use crate::{
    ChartAnalysis, DensityCurve, KeyCount, NOTE_HASH_VERSION, NoteHash, Patterns, Rating, VARIANT_VERSION,
    Variant,
};

/// The numbers of a chart (docs/formats/records.md, "Chart numbers"). BPM and density are rounded to 3
/// decimals.
///
/// They are stored once per note hash, computed from the ROX file of the chart that was ingested first, and can
/// be recomputed from it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartNumbers {
    /// The number of columns.
    pub keys: KeyCount,
    /// Lowest BPM of any part of the chart.
    pub bpm_min: f64,
    /// Highest BPM of any part of the chart.
    pub bpm_max: f64,
    /// The BPM that applies for the longest time.
    pub bpm_main: f64,
    /// Time from the start of the first note to the end of the last, in milliseconds.
    pub length_ms: u32,
    /// Number of playable notes, including long notes.
    pub notes: u32,
    /// Number of long notes.
    pub lns: u32,
    /// Average number of notes per second; 0 if the length is 0.
    pub density_avg: f64,
    /// Maximum number of notes that start within one second.
    pub density_peak: f64,
}

impl ChartNumbers {
    /// The share of long notes in percent, rounded half up; 0 without notes.
    #[must_use]
    pub fn ln_share(&self) -> u8 {
        let (notes, lns) = (u64::from(self.notes), u64::from(self.lns));
        u8::try_from((200 * lns + notes).checked_div(2 * notes).unwrap_or(0)).unwrap_or(100)
    }

    /// Compares charts by keys, then average density, then hash: the order of the charts of a chartset.
    #[must_use]
    pub fn detail_order(&self, hash: &NoteHash, other: &Self, other_hash: &NoteHash) -> Ordering {
        (self.keys.cmp(&other.keys))
            .then(self.density_avg.total_cmp(&other.density_avg))
            .then(hash.cmp(other_hash))
    }
}

/// The maximum number of tags of a chart; further ones are dropped. Real charts have up to about 150.
pub const MAX_CHART_TAGS: usize = 200;

/// The metadata of a chart file. Strings are empty if the file does not have the field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartMetadata {
    /// As the file spells it, in any script.
    pub title: String,
    /// As the file spells it, in any script.
    pub artist: String,
    /// Title in Latin letters, if it differs from the original one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title_romanised: Option<String>,
    /// Artist in Latin letters, if it differs from the original one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub artist_romanised: Option<String>,
    /// Author of the chart.
    pub creator: String,
    /// The name that the author gave to the difficulty, such as `Insane`.
    pub difficulty: String,
    /// Tags, in the order of the file.
    #[serde(deserialize_with = "deserialize_first::<_, _, MAX_CHART_TAGS>")]
    pub tags: Vec<String>,
}

/// The Chart object (docs/formats/records.md, "Chart").
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chart {
    /// Identifies the chart.
    pub hash: NoteHash,
    /// The scheme of the hash: [`NOTE_HASH_VERSION`](crate::NOTE_HASH_VERSION).
    pub note_hash_version: u32,
    /// Key count, BPM, length, notes and densities.
    #[serde(flatten)]
    pub numbers: ChartNumbers,
    /// Size of the ROX file in bytes.
    pub rox_bytes: u64,
    /// As the file spells it, in any script.
    pub title: String,
    /// As the file spells it, in any script.
    pub artist: String,
    /// Author of the chart.
    pub creator: String,
    /// The name that the author gave to the difficulty, such as `Insane`.
    pub difficulty: String,
    /// The variant of its notes; only in responses to `include=variants`, if the chart has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    pub variant: Option<Variant>,
    /// [`VARIANT_VERSION`](crate::VARIANT_VERSION), with `variant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    pub variant_version: Option<u8>,
    /// How hard it is to play; only in responses to `include=rating`, if the chart has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rating: Option<Rating>,
    /// What its rows consist of; only in responses to `include=patterns`, once they are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub patterns: Option<Patterns>,
}

impl Chart {
    /// A chart with all extension fields that it has, and the metadata of one of its files.
    #[must_use]
    pub fn new(hash: NoteHash, values: &ChartValues, metadata: &ChartMetadata) -> Self {
        let ChartValues { numbers, variant, analysis, rox_bytes, .. } = *values;
        Self {
            hash,
            note_hash_version: NOTE_HASH_VERSION,
            numbers,
            rox_bytes,
            title: metadata.title.clone(),
            artist: metadata.artist.clone(),
            creator: metadata.creator.clone(),
            difficulty: metadata.difficulty.clone(),
            variant,
            variant_version: variant.map(|_| VARIANT_VERSION),
            rating: analysis.and_then(|analysis| analysis.rating),
            patterns: analysis.map(|analysis| analysis.patterns),
        }
    }
}

/// The values that are stored with a note hash, computed from the ROX file.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ChartValues {
    /// Key count, BPM, length, notes and densities.
    pub numbers: ChartNumbers,
    /// The variant of its notes, if it has one.
    pub variant: Option<Variant>,
    /// The rating and the patterns; `None` until this version has computed them.
    pub analysis: Option<ChartAnalysis>,
    /// Size of the ROX file in bytes.
    pub rox_bytes: u64,
    /// The density curve; `None` until it is computed for a chart of an older version.
    pub curve: Option<DensityCurve>,
}

/// Rounds to 3 decimals, the precision of BPM and density in the API. Values that are not finite become 0.
#[must_use]
pub fn round_to_thousandths(value: f64) -> f64 {
    if value.is_finite() { (value * 1000.0).round() / 1000.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_three_decimals() {
        for (value, expected) in
            [(174.999_94, 175.0), (0.000_49, 0.0), (0.0005, 0.001), (f64::NAN, 0.0), (f64::INFINITY, 0.0)]
        {
            assert!((round_to_thousandths(value) - expected).abs() < f64::EPSILON, "{value}");
        }
    }
}
