//! Which charts of a set satisfy the filters. The list filters sets: one chart may have the key count and
//! another the length.

use chart_index_domain::search::{ChartConditions, FilterableChart, SearchQuery};
use chart_index_domain::{Chart, text};

/// The filters of a query that a single chart can satisfy or not.
pub(crate) struct ChartMatcher {
    conditions: ChartConditions,
    /// Part of the creator's name, folded.
    creator: Option<String>,
}

impl ChartMatcher {
    /// `None` if the query has no such filter.
    pub(crate) fn new(search: &SearchQuery) -> Option<Self> {
        let conditions = SearchQuery { matches_one_chart: true, ..search.clone() }.chart_conditions()?;
        let ChartConditions { keys, values, bpm, length_ms } = &conditions;
        let has_none = keys.is_empty() && values.is_empty() && bpm.is_unbounded() && length_ms.is_unbounded();
        let creator = search.creator.as_deref().map(text::fold_case);
        (!has_none || creator.is_some()).then_some(Self { conditions, creator })
    }

    /// Whether a chart satisfies all of them.
    pub(crate) fn matches(&self, chart: &Chart) -> bool {
        let row_shares = chart.patterns.map(|patterns| patterns.row_shares);
        self.conditions.are_met_by(&FilterableChart::new(&chart.numbers, chart.rating, row_shares))
            && self.creator.as_ref().is_none_or(|part| text::fold_case(&chart.creator).contains(part))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use chart_index_domain::search::parse_query_string;
    use chart_index_domain::{ChartMetadata, ChartNumbers, ChartValues, KeyCount, NoteHash};

    use super::*;

    pub(crate) fn chart() -> Chart {
        let numbers = ChartNumbers {
            keys: KeyCount::try_from(7).unwrap(),
            bpm_min: 100.0,
            bpm_max: 200.0,
            length_ms: 92_000,
            notes: 10,
            lns: 1,
            density_avg: 5.0,
            density_peak: 12.0,
            ..ChartNumbers::default()
        };
        let metadata = ChartMetadata { creator: "ZoË".into(), ..ChartMetadata::default() };
        let values = ChartValues { numbers, ..ChartValues::default() };
        Chart::new(NoteHash::from_bytes([0; 32]), &values, &metadata)
    }

    #[test]
    fn every_filter_applies_to_a_chart() {
        for (query, expected) in [
            ("keys=7", true),
            ("keys=4,7", true),
            ("keys=4", false),
            ("bpmMin=200", true),
            ("bpmMin=200.001", false),
            ("bpmMax=100", true),
            ("bpmMin=120&bpmMax=130", true),
            ("lengthMin=92&lengthMax=92", true),
            ("lengthMax=91.999", false),
            ("densityMin=12", true),
            ("densityMin=12.001", false),
            ("lnMin=10&notesMax=10", true),
            ("ratingMin=1", false),
            ("creator=oë", true),
            ("creator=amy", false),
            ("keys=7&densityMin=13", false),
        ] {
            let search = parse_query_string(query).unwrap();
            assert_eq!(ChartMatcher::new(&search).unwrap().matches(&chart()), expected, "{query}");
        }
    }

    #[test]
    fn filters_of_sets_mark_no_chart() {
        for query in ["", "q=a", "source=alphaSet", "sort=title&page=2"] {
            assert!(ChartMatcher::new(&parse_query_string(query).unwrap()).is_none(), "{query}");
        }
    }
}
