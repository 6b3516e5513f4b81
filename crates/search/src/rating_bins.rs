//! The bins of ratings in documents, whose facet distribution is a histogram.
//!
//! A document has one value for each bin with a chart: the bin, and a bit for each key count of the charts in
//! it. So a chartset is counted once in a bin whatever the key counts of a query are, and there are at most
//! 26 · 15 values.

use std::collections::{BTreeMap, HashMap};

use chart_index_domain::search::{FilterableChart, KeySet};
use chart_index_domain::{KeyCount, Rating};

/// The number of sets of key counts, with the empty one.
const SETS: usize = 1 << (KeyCount::MAX - KeyCount::MIN + 1);

/// Greater than any value.
pub(crate) const VALUES: usize = Rating::BINS * SETS;

/// The values of a chartset with these charts.
pub(crate) fn values(charts: &[FilterableChart]) -> Vec<usize> {
    let mut bins: BTreeMap<usize, usize> = BTreeMap::new();
    for chart in charts {
        if let Some(rating) = chart.rating {
            *bins.entry(rating.bin()).or_default() |= bit(chart.keys);
        }
    }
    bins.into_iter().map(|(bin, keys)| bin * SETS + keys).collect()
}

/// Sums the counts by value into bins, for charts with one of these key counts. `None` if a value is out of
/// range.
pub(crate) fn histogram(counts: &HashMap<usize, u64>, keys: KeySet) -> Option<[u64; Rating::BINS]> {
    let asked = if keys.is_empty() { SETS - 1 } else { keys.iter().map(bit).sum() };
    let mut bins = [0; Rating::BINS];
    for (value, count) in counts {
        let bin = bins.get_mut(value / SETS)?;
        if (value % SETS) & asked != 0 {
            *bin += count;
        }
    }
    Some(bins)
}

fn bit(keys: KeyCount) -> usize {
    1 << (keys.get() - KeyCount::MIN)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::search::parse_query_string;

    use super::*;
    use crate::document::tests::indexed;

    fn chart(keys: u8, rating: Option<u16>) -> FilterableChart {
        let rating = rating.and_then(Rating::from_hundredths);
        FilterableChart { keys: KeyCount::try_from(keys).unwrap(), rating, ..indexed(1, "a").charts[0] }
    }

    #[test]
    fn chartset_has_one_value_for_each_bin() {
        let charts = [(4, Some(0)), (4, Some(24)), (7, Some(3)), (5, Some(25)), (6, Some(1_500)), (4, None)];
        let values = values(&charts.map(|(keys, rating)| chart(keys, rating)));
        assert_eq!(values, [0b1001, 16 + 0b0010, 25 * 16 + 0b0100]);
    }

    #[test]
    fn chartset_is_counted_once_in_a_bin() {
        let counts = HashMap::from([(0b0001, 10), (0b1001, 3), (0b1000, 5), (25 * 16 + 0b0010, 1)]);
        for (query, first, last) in [("", 18, 1), ("keys=4", 13, 0), ("keys=4,7", 18, 0), ("keys=5,6", 0, 1)]
        {
            let bins = histogram(&counts, parse_query_string(query).unwrap().keys).unwrap();
            assert_eq!((bins[0], bins[25], bins[1..25].iter().sum()), (first, last, 0), "{query}");
        }
        assert_eq!(histogram(&HashMap::from([(26 * 16, 1)]), KeySet::default()), None);
    }
}
