//! The patterns of a chart as its page shows them.

use std::cmp::Reverse;

use chart_index_domain::{Pattern, Patterns};

use crate::format;

/// What the rows of a chart consist of.
#[derive(Debug)]
pub(crate) struct PatternsView {
    /// The classes that occur, the largest first.
    pub(crate) bars: Vec<PatternBar>,
    /// In percent of the notes.
    pub(crate) ln_note_share: u8,
    /// In percent of the time.
    pub(crate) ln_time_share: u8,
    pub(crate) rows_per_second_median: String,
    pub(crate) rows_per_second_p90: String,
}

/// A class of rows.
#[derive(Debug)]
pub(crate) struct PatternBar {
    pub(crate) name: &'static str,
    /// In percent of the rows.
    pub(crate) share: u8,
    pub(crate) meaning: &'static str,
}

impl PatternsView {
    pub(crate) fn new(patterns: &Patterns) -> Self {
        let per_second = |hundredths: u16| format::decimal(f64::from(hundredths) / 100.0, 2);
        let mut bars: Vec<_> = Pattern::ALL
            .iter()
            .map(|pattern| PatternBar::new(*pattern, patterns.share(*pattern)))
            .filter(|bar| bar.share > 0)
            .collect();
        bars.sort_by_key(|bar| Reverse(bar.share));
        Self {
            bars,
            ln_note_share: patterns.ln_note_share,
            ln_time_share: patterns.ln_time_share,
            rows_per_second_median: per_second(patterns.rows_per_second_median),
            rows_per_second_p90: per_second(patterns.rows_per_second_p90),
        }
    }
}

impl PatternBar {
    fn new(pattern: Pattern, share: u8) -> Self {
        Self { name: pattern.as_str(), share, meaning: meaning(pattern) }
    }
}

/// docs/formats/patterns.md, "Classes of rows", in a line.
const fn meaning(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Jack => "a column of the row before is repeated",
        Pattern::Chordjack => "a column is repeated from one chord to the next",
        Pattern::Longjack => "a column is repeated in at least five rows",
        Pattern::Trill => "two single notes in turn, at least six rows",
        Pattern::Jumptrill => "two shapes in turn, at least one of them a chord, at least six rows",
        Pattern::Stream => "single notes, each in another column than the one before, at least five rows",
        Pattern::Jumpstream => "a stream with chords of two notes",
        Pattern::Handstream => "a stream with chords of three notes or more",
        Pattern::Chordstream => "a stream with chords",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_occur_are_ordered_by_their_share() {
        let patterns = Patterns {
            row_shares: [5, 0, 0, 20, 0, 71, 0, 0, 0],
            rows_per_second_median: 512,
            rows_per_second_p90: 900,
            ..Patterns::default()
        };
        let view = PatternsView::new(&patterns);
        let bars: Vec<_> = view.bars.iter().map(|bar| (bar.name, bar.share)).collect();
        assert_eq!(bars, [("stream", 71), ("trill", 20), ("jack", 5)]);
        assert_eq!((view.rows_per_second_median.as_str(), view.rows_per_second_p90.as_str()), ("5.12", "9"));
    }
}
