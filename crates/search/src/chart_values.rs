//! The numbers of charts in documents, by which a single chart of a chartset is filtered.
//!
//! A document has an attribute for each key count with the numbers of all its charts with so many keys. All
//! kinds of numbers are in the same attribute, each in a range of its own: a rating of 5.27 is 527, an LN share
//! of 20 % is 2³³ · 2 + 20. The filter `values4 TO` finds the chartsets in which one 4-key chart has a number
//! in a range. Two such filters may be met by two charts, so a query with several conditions for one chart is
//! not supported. An attribute for each kind of number and key count would be 56, and a document for each chart
//! would give totals and pages of charts instead of chartsets.

use std::collections::BTreeMap;
use std::fmt;

use chart_index_domain::search::{Bounds, ChartConditions, ChartValue, FilterableChart, KeySet};
use chart_index_domain::{KeyCount, Pattern};

use crate::unsupported_query::UnsupportedQuery;

/// The attributes, by key count from 4.
pub(crate) const ATTRIBUTES: [&str; 4] = ["values4", "values5", "values6", "values7"];

/// The size of the range of each kind. A whole number of 2³³ · 14 is exact, and so are thousandths of BPM.
/// Greater than any number of a chart but a BPM.
const SPAN: f64 = 8_589_934_592.0;

/// The numbers of the charts by attribute, each once, ascending. A filter for a class of rows begins at 1 %, so
/// shares of 0 % are left out.
pub(crate) fn attributes(charts: &[FilterableChart]) -> BTreeMap<&'static str, Vec<f64>> {
    let mut attributes: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for chart in charts {
        let kinds = [
            ChartValue::Rating,
            ChartValue::Density,
            ChartValue::LnShare,
            ChartValue::Notes,
            ChartValue::MainBpm,
        ];
        let shares = Pattern::ALL.iter().map(|pattern| ChartValue::RowShare(*pattern));
        let shares = shares.filter(|kind| chart.value(*kind).is_some_and(|share| share > 0.0));
        let numbers = kinds.into_iter().chain(shares).filter_map(|kind| Some(code(kind, chart.value(kind)?)));
        attributes.entry(attribute(chart.keys)).or_default().extend(numbers);
    }
    for numbers in attributes.values_mut() {
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
    }
    attributes
}

/// The numbers of an attribute from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    attribute: &'static str,
    from: f64,
    to: f64,
}

/// In the syntax of Meilisearch.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attribute, from, to } = self;
        write!(f, "{attribute} {from} TO {to}")
    }
}

/// The ranges in one of which a chartset has a number if one of its charts meets these conditions. Empty if all
/// chartsets with one of the key counts match.
pub(crate) fn ranges(conditions: &ChartConditions) -> Result<Vec<Range>, UnsupportedQuery> {
    let ChartConditions { keys, values, bpm, length_ms } = conditions;
    match (&values[..], bpm.is_unbounded() && length_ms.is_unbounded()) {
        ([], true) => Ok(Vec::new()),
        ([(ChartValue::MainBpm, bounds)], true) if is_above_the_span(*bounds) => {
            Err(UnsupportedQuery::BpmTooHigh)
        }
        ([(kind, bounds)], true) => Ok(of_keys(*keys, *kind, *bounds)),
        _ => Err(UnsupportedQuery::SeveralChartConditions),
    }
}

/// Whether a bound is in the range of another kind. Of the numbers only a BPM may be as high.
fn is_above_the_span(bounds: Bounds) -> bool {
    [bounds.min, bounds.max].into_iter().flatten().any(|bound| bound >= SPAN - 1.0)
}

fn of_keys(keys: KeySet, kind: ChartValue, bounds: Bounds) -> Vec<Range> {
    let (from, to) = (code(kind, bounds.min.unwrap_or(0.0)), code(kind, bounds.max.unwrap_or(SPAN)));
    let all = (KeyCount::MIN..=KeyCount::MAX).filter_map(|keys| KeyCount::try_from(keys).ok());
    let keys = all.filter(|count| keys.is_empty() || keys.contains(*count));
    keys.map(|keys| Range { attribute: attribute(keys), from, to }).collect()
}

fn attribute(keys: KeyCount) -> &'static str {
    ATTRIBUTES[usize::from(keys.get() - KeyCount::MIN)]
}

/// A number in the range of its kind.
fn code(kind: ChartValue, number: f64) -> f64 {
    let range = match kind {
        ChartValue::Rating => 0,
        ChartValue::Density => 1,
        ChartValue::LnShare => 2,
        ChartValue::Notes => 3,
        ChartValue::MainBpm => 4,
        ChartValue::RowShare(pattern) => 5 + pattern as u8,
    };
    f64::from(range) * SPAN + number.min(SPAN - 1.0)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::Rating;
    use chart_index_domain::search::parse_query_string;

    use super::*;

    fn ranges_of(query: &str) -> Result<String, UnsupportedQuery> {
        let conditions = parse_query_string(query).unwrap().chart_conditions().unwrap();
        let ranges = ranges(&conditions)?;
        Ok(ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" OR "))
    }

    #[test]
    fn one_condition_is_a_range() {
        for (query, expected) in [
            ("keys=4&ratingMin=5&ratingMax=6", "values4 500 TO 600"),
            ("keys=7&ratingMin=5", "values7 500 TO 8589934591"),
            ("keys=5&densityMax=9.5", "values5 8589934592 TO 8589934601.5"),
            ("keys=5&lnMin=20", "values5 17179869204 TO 25769803775"),
            ("keys=5&notesMax=1e12", "values5 25769803776 TO 34359738367"),
            ("keys=6&mainBpmMin=174.501&mainBpmMax=175", "values6 34359738542.501 TO 34359738543"),
            ("keys=5&pattern=jack:50", "values5 42949673010 TO 51539607551"),
            (
                "keys=4,6&lnMax=0&match=chart",
                "values4 17179869184 TO 17179869184 OR values6 17179869184 TO 17179869184",
            ),
        ] {
            assert_eq!(ranges_of(query), Ok(expected.to_owned()), "{query}");
        }
        assert_eq!(ranges_of("match=chart&keys=4"), Ok(String::new()));
        assert_eq!(ranges_of("mainBpmMax=1e10"), Err(UnsupportedQuery::BpmTooHigh));
        for query in [
            "ratingMin=1&lnMin=1",
            "pattern=jack:1,stream:1",
            "match=chart&bpmMin=1",
            "match=chart&lengthMax=9",
        ] {
            assert_eq!(ranges_of(query), Err(UnsupportedQuery::SeveralChartConditions), "{query}");
        }
    }

    #[test]
    fn numbers_are_in_the_attribute_of_their_key_count() {
        let chart = |keys, rating| FilterableChart {
            keys: KeyCount::try_from(keys).unwrap(),
            bpm_min: 100.0,
            bpm_max: 100.0,
            bpm_main: 6.5,
            length_ms: 1,
            density_peak: 3.0,
            ln_share: 4,
            notes: 5,
            rating: Rating::from_hundredths(rating),
            row_shares: None,
        };
        let attributes = attributes(&[chart(7, 527), chart(4, 9_999), chart(4, 100)]);
        let rest = [SPAN + 3.0, 2.0 * SPAN + 4.0, 3.0 * SPAN + 5.0, 4.0 * SPAN + 6.5];
        assert_eq!(attributes["values4"], [&[100.0], &rest[..]].concat());
        assert_eq!(attributes["values7"], [&[527.0], &rest[..]].concat());
        assert_eq!(attributes.len(), 2);
    }
}
