//! One chart: its numbers, its text, and the object of the contract that joins both.

use serde::Serialize;

use crate::{KeyCount, NoteHash};

/// The numbers of a chart (decisions, "Chart numbers"). BPM and density are rounded to 3 decimals.
///
/// They belong to the note hash: the file that was ingested first decides them, as it decides the ROX bytes, so
/// that they can be computed again from those bytes at any time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartNumbers {
    /// Number of keys.
    pub keys: KeyCount,
    /// Lowest beats per minute.
    pub bpm_min: f64,
    /// Highest beats per minute.
    pub bpm_max: f64,
    /// The beats per minute in force for the longest time.
    pub bpm_main: f64,
    /// From the start of the first note to the end of the last, in milliseconds.
    pub length_ms: u32,
    /// Playable notes, long notes included.
    pub notes: u32,
    /// Long notes.
    pub lns: u32,
    /// Notes per second over the whole length; 0 for a zero length.
    pub density_avg: f64,
    /// The most notes that start in any window of one second.
    pub density_peak: f64,
}

/// What a chart file says of itself in words. Empty where the file says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartMetadata {
    /// Title as its author wrote it.
    pub title: String,
    /// Artist as its author wrote it.
    pub artist: String,
    /// Title in Latin letters, where the file has another one.
    pub title_romanised: Option<String>,
    /// Artist in Latin letters, where the file has another one.
    pub artist_romanised: Option<String>,
    /// Who made the chart.
    pub creator: String,
    /// Name of the difficulty in its set.
    pub difficulty: String,
    /// Tags, in the order of the file.
    pub tags: Vec<String>,
}

/// The Chart object of the contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chart {
    /// The note hash.
    pub hash: NoteHash,
    /// Version of the hash scheme.
    pub note_hash_version: u32,
    /// Key count, BPM, length, notes and densities.
    #[serde(flatten)]
    pub numbers: ChartNumbers,
    /// Size of the ROX file in bytes.
    pub rox_bytes: u64,
    /// Title as its author wrote it.
    pub title: String,
    /// Artist as its author wrote it.
    pub artist: String,
    /// Who made the chart.
    pub creator: String,
    /// Name of the difficulty.
    pub difficulty: String,
}

/// Rounds to the 3 decimals in which the API gives BPM and density. What is not finite becomes 0.
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
