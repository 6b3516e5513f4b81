//! Variants: charts with the same order of rows, whatever their times (docs/formats/variant.md).

use serde::Serialize;
use utoipa::ToSchema;

use crate::KeyCount;
use crate::identity::impl_hex_bytes;

/// The version of the fingerprint, `variantVersion` in the API. The fingerprint contains it.
pub const VARIANT_VERSION: u8 = 1;

/// A note joins the row of the note before it if it starts at most this much later. Converters round each time
/// on its own, so that the notes of a chord come apart.
const MAX_GAP_MS: u32 = 3;
/// Shorter charts have the same rows as unrelated ones.
const MIN_ROWS: usize = 32;
/// So have charts that repeat few patterns: the least number of distinct windows of [`WINDOW`] rows.
const MIN_WINDOWS: usize = 16;
const WINDOW: usize = 4;
/// How far a row may be from its place at a uniform rate, in milliseconds.
const MAX_DEVIATION_MS: f64 = 5.0;

/// Identifies what a chart has in common with its conversions: the BLAKE3 digest of its key count and its rows
/// (docs/formats/variant.md). Charts with the same variant need not be the same chart.
///
/// Its text form is exactly 64 lower-case hexadecimal digits; nothing else parses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant([u8; 32]);

impl_hex_bytes!(Variant, MalformedVariant, 32, "a variant");

/// How the times of two charts with the same rows compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum VariantTiming {
    /// One is the other at another rate, or at the same: every row is within 5 ms of its place.
    Uniform,
    /// Some rows are elsewhere.
    Differs,
}

/// The rows of a chart: the columns in which notes start together, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    keys: KeyCount,
    /// Bit c of a row is set if a note starts in column c.
    columns: Vec<u8>,
    starts_ms: Vec<u32>,
}

impl Rows {
    /// Groups notes, each as its start in milliseconds and its column, in the order of their starts. Columns
    /// are below the key count.
    #[must_use]
    pub fn new(keys: KeyCount, notes: impl IntoIterator<Item = (u32, u8)>) -> Self {
        let (mut columns, mut starts_ms) = (Vec::new(), Vec::new());
        let mut previous = None;
        for (start_ms, column) in notes {
            match columns.last_mut() {
                Some(row) if previous.is_some_and(|previous| start_ms - previous <= MAX_GAP_MS) => {
                    *row |= 1 << column;
                }
                _ => {
                    columns.push(1 << column);
                    starts_ms.push(start_ms);
                }
            }
            previous = Some(start_ms);
        }
        Self { keys, columns, starts_ms }
    }

    /// When the first note of each row starts, in milliseconds.
    #[must_use]
    pub fn starts_ms(&self) -> &[u32] {
        &self.starts_ms
    }

    /// The input of the digest: the version, the key count, and the rows, a byte each.
    #[must_use]
    pub fn canonical_bytes(&self) -> Vec<u8> {
        [&[VARIANT_VERSION, self.keys.get()], &self.columns[..]].concat()
    }

    /// The variant of a chart with these rows; `None` if there are too few different ones to tell charts apart.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        (self.columns.len() >= MIN_ROWS && self.has_enough_windows())
            .then(|| Variant(*blake3::hash(&self.canonical_bytes()).as_bytes()))
    }

    /// Whether one rate fits the times of these rows and of other ones; `None` if the rows are not the same.
    ///
    /// The rate is the slope of the line with the least squares.
    #[must_use]
    pub fn timing(&self, other: &Self) -> Option<VariantTiming> {
        if (self.keys, &self.columns) != (other.keys, &other.columns) {
            return None;
        }
        let pairs =
            || self.starts_ms.iter().zip(&other.starts_ms).map(|(&x, &y)| (f64::from(x), f64::from(y)));
        let count = pairs().map(|_| 1.0).sum::<f64>();
        let (sum_x, sum_y) = pairs().fold((0.0, 0.0), |(sum_x, sum_y), (x, y)| (sum_x + x, sum_y + y));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let covariance: f64 = pairs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let variance: f64 = pairs().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
        let rate = covariance / variance;
        let deviations = pairs().map(|(x, y)| y - rate * x);
        let (least, greatest) = deviations
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), deviation| {
                (least.min(deviation), greatest.max(deviation))
            });
        let is_uniform = greatest - least <= 2.0 * MAX_DEVIATION_MS;
        Some(if is_uniform { VariantTiming::Uniform } else { VariantTiming::Differs })
    }

    fn has_enough_windows(&self) -> bool {
        let mut distinct = Vec::with_capacity(MIN_WINDOWS);
        for window in self.columns.array_windows::<WINDOW>() {
            if !distinct.contains(&window) {
                distinct.push(window);
            }
            if distinct.len() == MIN_WINDOWS {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a chart with these rows has a variant.
    fn has_variant(columns: impl IntoIterator<Item = u8>) -> bool {
        let rows = Rows {
            keys: KeyCount::try_from(5).unwrap(),
            columns: columns.into_iter().collect(),
            starts_ms: Vec::new(),
        };
        rows.variant().is_some()
    }

    fn rows(keys: u8, notes: impl IntoIterator<Item = (u32, u8)>) -> Rows {
        Rows::new(KeyCount::try_from(keys).unwrap(), notes)
    }

    /// 64 rows, 125 ms apart. `start` converts the times.
    fn converted(start: fn(u32) -> u32) -> Rows {
        rows(5, (0..64).map(|i| (start(125 * i), u8::try_from((i * i + i / 3 + i / 8) % 5).unwrap())))
    }

    #[test]
    fn timing_is_uniform_if_one_rate_fits_every_row() {
        let original = converted(|start| start);
        for (other, expected) in [
            (converted(|start| start), VariantTiming::Uniform),
            (converted(|start| (20 * start + 11) / 22), VariantTiming::Uniform),
            (converted(|start| 7 + start + start / 125 % 2 * 9), VariantTiming::Uniform),
            (converted(|start| start + start / 125 % 2 * 12), VariantTiming::Differs),
            (converted(|start| if start < 4_000 { start } else { start + 40 }), VariantTiming::Differs),
        ] {
            assert_eq!(original.timing(&other), Some(expected));
            assert_eq!(other.timing(&original), Some(expected));
        }
        assert_eq!(original.timing(&rows(4, [(0, 0)])), None);
    }

    #[test]
    fn charts_with_few_rows_or_few_patterns_have_none() {
        for (rows, expected) in [(31, false), (32, true)] {
            assert_eq!(has_variant(1..=rows), expected, "{rows} rows");
        }
        // Different rows in turn have as many windows.
        for (windows, expected) in [(15, false), (16, true)] {
            assert_eq!(has_variant((0..64).map(|i| 1 + i % windows)), expected, "{windows} windows");
        }
    }

    #[test]
    fn rows_start_at_their_first_note() {
        let notes = [(0, 2), (3, 0), (6, 1), (10, 3), (10, 3), (13, 0), (14, 3), (18, 0)];
        let rows = Rows::new(KeyCount::try_from(4).unwrap(), notes);
        assert_eq!(rows.starts_ms(), [0, 10, 18]);
    }
}
