//! Filters that a single chart of a chartset has to meet (docs/api.md, "Chartset list").

use serde::Serialize;

use super::{Bounds, KeySet, SearchQuery};
use crate::{ChartNumbers, KeyCount, Pattern, Patterns, Rating};

/// What one chart of a chartset has to meet, with one of the key counts of the query. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChartFilter {
    /// The rating, in hundredths. A chart without one is in no range.
    pub rating: Bounds,
    /// The main BPM.
    pub bpm_main: Bounds,
    /// The peak density is at most this, in notes per second.
    pub density_max: Option<f64>,
    /// The share of long notes, in percent, rounded.
    pub ln_share: Bounds,
    /// The number of notes.
    pub notes: Bounds,
    /// The least shares of rows of these classes, in percent. Each class once, in their order.
    pub patterns: Vec<(Pattern, u8)>,
}

/// All conditions of a query that a single chart has to meet together.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartConditions {
    /// One of these key counts; any if empty.
    pub keys: KeySet,
    /// Values in these ranges.
    pub values: Vec<(ChartValue, Bounds)>,
    /// A BPM range that overlaps this range.
    pub bpm: Bounds,
    /// A length in this range, in milliseconds.
    pub length_ms: Bounds,
}

/// A number of a chart. All but the density and the BPM are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartValue {
    /// The rating in hundredths; none of a chart without one.
    Rating,
    /// The peak density, in notes per second.
    Density,
    /// The main BPM.
    MainBpm,
    /// The share of long notes, in percent.
    LnShare,
    /// The number of notes.
    Notes,
    /// The share of rows of a class, in percent; none of a chart whose patterns are not computed.
    RowShare(Pattern),
}

/// What lists filter and sort by of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterableChart {
    /// The number of columns.
    pub keys: KeyCount,
    /// Lowest BPM of any part.
    pub bpm_min: f64,
    /// Highest BPM of any part.
    pub bpm_max: f64,
    /// The BPM of most of the chart.
    pub bpm_main: f64,
    /// In milliseconds.
    pub length_ms: u32,
    /// In notes per second.
    pub density_peak: f64,
    /// Of the notes that are long notes, in percent.
    pub ln_share: u8,
    /// The number of notes.
    pub notes: u32,
    /// `None` if the chart has none, or none of the version that lists filter by.
    pub rating: Option<Rating>,
    /// `None` if they are not of the version that lists filter by.
    pub row_shares: Option<[u8; Patterns::CLASSES]>,
}

impl SearchQuery {
    /// The conditions that one chart has to meet; `None` if any charts of a chartset may meet those of the
    /// query.
    #[must_use]
    pub fn chart_conditions(&self) -> Option<ChartConditions> {
        if !self.matches_one_chart && self.chart == ChartFilter::default() {
            return None;
        }
        let ChartFilter { rating, bpm_main, density_max, ln_share, notes, patterns } = &self.chart;
        let density_min = self.density_min.filter(|_| self.matches_one_chart);
        let of_chartset = |bounds| if self.matches_one_chart { bounds } else { Bounds::default() };
        let values = [
            (ChartValue::Rating, *rating),
            (ChartValue::MainBpm, *bpm_main),
            (ChartValue::Density, Bounds { min: density_min, max: *density_max }),
            (ChartValue::LnShare, *ln_share),
            (ChartValue::Notes, *notes),
        ];
        let shares = patterns.iter().map(|(pattern, percent)| {
            (ChartValue::RowShare(*pattern), Bounds { min: Some(f64::from(*percent)), max: None })
        });
        Some(ChartConditions {
            keys: self.keys,
            values: values.into_iter().filter(|(_, bounds)| !bounds.is_unbounded()).chain(shares).collect(),
            bpm: of_chartset(self.bpm),
            length_ms: of_chartset(self.length_ms),
        })
    }
}

impl ChartConditions {
    /// Whether a chart meets all of them.
    #[must_use]
    pub fn are_met_by(&self, chart: &FilterableChart) -> bool {
        (self.keys.is_empty() || self.keys.contains(chart.keys))
            && self.bpm.overlaps(chart.bpm_min, chart.bpm_max)
            && self.length_ms.contains(chart.length_ms.into())
            && self
                .values
                .iter()
                .all(|(value, bounds)| chart.value(*value).is_some_and(|number| bounds.contains(number)))
    }
}

impl FilterableChart {
    /// What lists filter by of a chart with these numbers.
    #[must_use]
    pub fn new(
        numbers: &ChartNumbers,
        rating: Option<Rating>,
        row_shares: Option<[u8; Patterns::CLASSES]>,
    ) -> Self {
        Self {
            keys: numbers.keys,
            bpm_min: numbers.bpm_min,
            bpm_max: numbers.bpm_max,
            bpm_main: numbers.bpm_main,
            length_ms: numbers.length_ms,
            density_peak: numbers.density_peak,
            ln_share: numbers.ln_share(),
            notes: numbers.notes,
            rating,
            row_shares,
        }
    }

    /// A number of the chart, if it has it.
    #[must_use]
    pub fn value(&self, value: ChartValue) -> Option<f64> {
        match value {
            ChartValue::Rating => self.rating.map(|rating| rating.hundredths().into()),
            ChartValue::Density => Some(self.density_peak),
            ChartValue::MainBpm => Some(self.bpm_main),
            ChartValue::LnShare => Some(self.ln_share.into()),
            ChartValue::Notes => Some(self.notes.into()),
            ChartValue::RowShare(pattern) => self.row_shares.map(|shares| shares[pattern as usize].into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::parse_query_string;

    fn chart(keys: u8, rating: Option<u16>) -> FilterableChart {
        FilterableChart {
            keys: KeyCount::try_from(keys).unwrap(),
            bpm_min: 90.0,
            bpm_max: 180.0,
            bpm_main: 120.5,
            length_ms: 60_000,
            density_peak: 12.0,
            ln_share: 25,
            notes: 500,
            rating: rating.and_then(Rating::from_hundredths),
            row_shares: Some([10, 0, 0, 0, 0, 50, 20, 0, 0]),
        }
    }

    #[test]
    fn chart_meets_all_conditions_or_does_not_match() {
        let chart = chart(4, Some(500));
        for (query, expected) in [
            ("match=chart", true),
            ("keys=4,7&ratingMin=5&ratingMax=5", true),
            ("keys=7&ratingMin=5", false),
            ("ratingMin=5.001", false),
            ("ratingMax=4.999", false),
            ("densityMax=12&lnMin=25&lnMax=25&notesMin=500&notesMax=500", true),
            ("densityMax=11.9", false),
            ("mainBpmMin=120.5&mainBpmMax=120.5", true),
            ("mainBpmMin=120.501", false),
            ("mainBpmMax=120.499", false),
            ("lnMin=25.1", false),
            ("notesMax=499.9", false),
            ("pattern=stream:50,jack:10", true),
            ("pattern=stream:51", false),
            ("pattern=trill:1", false),
            // Those of the chartset, unless one chart has to meet all.
            ("bpmMin=200&lengthMin=61&densityMin=13&lnMin=1", true),
            ("match=chart&bpmMin=200", false),
            ("match=chart&bpmMin=180&bpmMax=181&lengthMax=60&densityMin=12", true),
            ("match=chart&lengthMin=61", false),
            ("match=chart&densityMin=13", false),
        ] {
            let conditions = parse_query_string(query).unwrap().chart_conditions().unwrap();
            assert_eq!(conditions.are_met_by(&chart), expected, "{query}");
        }
        let plain = parse_query_string("keys=4&bpmMin=1&lengthMax=9&densityMin=1").unwrap();
        assert_eq!(plain.chart_conditions(), None);
    }

    #[test]
    fn chart_without_a_rating_is_in_no_range() {
        let conditions = |query| parse_query_string(query).unwrap().chart_conditions().unwrap();
        let unrated = FilterableChart { row_shares: None, ..chart(4, None) };
        assert!(!conditions("ratingMin=0").are_met_by(&unrated));
        assert!(!conditions("pattern=stream:1").are_met_by(&unrated));
        assert!(conditions("lnMin=0").are_met_by(&unrated));
    }
}
