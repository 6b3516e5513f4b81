//! What is computed of the notes of a chart for players: how hard it is, and of what kind.

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The version of the computation of [`Rating`] and [`Patterns`]. It increases when either changes.
pub const ANALYSIS_VERSION: u8 = 1;

/// The rating and the patterns of a chart, of version [`ANALYSIS_VERSION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartAnalysis {
    /// `None` if the chart is too short or too extreme to be rated (docs/formats/rating.md).
    pub rating: Option<Rating>,
    /// What its rows consist of.
    pub patterns: Patterns,
}

/// How hard a chart is to play (docs/formats/rating.md), in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rating(u16);

impl Rating {
    /// The algorithm in the API.
    pub const ALGORITHM: &'static str = "alphaStars";
    /// The version of the algorithm in the API.
    pub const VERSION: u8 = 1;
    /// The greatest rating, in hundredths.
    pub const MAX_HUNDREDTHS: u16 = 1_500;
    /// The number of bins of a histogram. All greater ratings are in the last one.
    pub const BINS: usize = 26;
    /// The width of a bin, in hundredths.
    pub const BIN_WIDTH: u16 = 25;

    /// A rating; `None` above the maximum.
    #[must_use]
    pub const fn from_hundredths(hundredths: u16) -> Option<Self> {
        if hundredths <= Self::MAX_HUNDREDTHS { Some(Self(hundredths)) } else { None }
    }

    /// The rating in hundredths.
    #[must_use]
    pub const fn hundredths(self) -> u16 {
        self.0
    }

    /// Its bin in a histogram, from 0.
    #[must_use]
    pub fn bin(self) -> usize {
        usize::from(self.0 / Self::BIN_WIDTH).min(Self::BINS - 1)
    }

    /// The rating with two decimals.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// The class of a row (docs/formats/patterns.md).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    VariantArray,
    IntoStaticStr,
    EnumString,
    Serialize,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Pattern {
    /// Repeats a column of the row before it.
    Jack,
    /// A jack between two chords.
    Chordjack,
    /// A column that repeats in five rows or more.
    Longjack,
    /// Two single notes in turn, six rows or more.
    Trill,
    /// Two shapes in turn, of which at least one is a chord, six rows or more.
    Jumptrill,
    /// A part of a run with single notes only.
    Stream,
    /// A part of a run with chords of two notes; with 4 keys only.
    Jumpstream,
    /// A part of a run with chords of three notes or more; with 4 keys only.
    Handstream,
    /// A part of a run with chords; with 5 to 7 keys only.
    Chordstream,
}

impl Pattern {
    /// All classes, in their order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in the API and in the filter `pattern`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the rows of a chart consist of (docs/formats/patterns.md). Shares are in percent, rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patterns {
    /// Of the rows, by class, in the order of [`Pattern`]. Rows without a class are in none of them.
    pub row_shares: [u8; Self::CLASSES],
    /// Of the notes that are long notes.
    pub ln_note_share: u8,
    /// Of the length of the chart, the time in which a long note is held.
    pub ln_time_share: u8,
    /// The median of the rows that start in a second, in hundredths.
    pub rows_per_second_median: u16,
    /// The 90th percentile of the rows that start in a second, in hundredths.
    pub rows_per_second_p90: u16,
}

impl Patterns {
    /// The version of the patterns in the API.
    pub const VERSION: u8 = 1;
    /// The number of classes of rows.
    pub const CLASSES: usize = Pattern::ALL.len();
    /// The size of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = Self::CLASSES + 6;

    /// The share of rows of this class, in percent.
    #[must_use]
    pub const fn share(&self, pattern: Pattern) -> u8 {
        self.row_shares[pattern as usize]
    }

    /// The form in which it is stored: the shares in the order of the fields, 1 byte each, then the rows per
    /// second, 2 bytes each, big-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let shares = self.row_shares.into_iter().chain([self.ln_note_share, self.ln_time_share]);
        let rates = [self.rows_per_second_median, self.rows_per_second_p90].map(u16::to_be_bytes);
        let values = shares.chain(rates.into_iter().flatten());
        bytes.iter_mut().zip(values).for_each(|(byte, value)| *byte = value);
        bytes
    }

    /// The patterns that were stored in this form.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [shares @ .., ln_note_share, ln_time_share, median1, median2, p90_1, p90_2] = bytes;
        Self {
            row_shares: shares,
            ln_note_share,
            ln_time_share,
            rows_per_second_median: u16::from_be_bytes([median1, median2]),
            rows_per_second_p90: u16::from_be_bytes([p90_1, p90_2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_they_were_stored() {
        let patterns = Patterns {
            row_shares: [1, 2, 3, 4, 5, 6, 7, 8, 9],
            ln_note_share: 10,
            ln_time_share: 11,
            rows_per_second_median: 512,
            rows_per_second_p90: 65_535,
        };
        assert_eq!(patterns.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 0, 255, 255]);
        assert_eq!(Patterns::from_bytes(patterns.to_bytes()), patterns);
    }
}
