//! How the numbers of charts are distributed, so that a page can say how one of them compares.

use crate::KeyCount;

/// A number of charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// In levels.
    Rating,
    /// In notes per second.
    DensityPeak,
}

/// The percentiles of a number of at least 100 charts.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// The number.
    pub measure: Measure,
    /// The key count of these charts; `None` for all charts.
    pub keys: Option<KeyCount>,
    /// For 1 % to 99 %, the least value which that share of the charts is below. There are fewer if many charts
    /// have the greatest value.
    pub lower_bounds: Vec<f64>,
}

impl Distribution {
    /// How many of the charts have a lower value, in percent from 0 to 99.
    #[must_use]
    pub fn percent_below(&self, value: f64) -> u8 {
        let reached = self.lower_bounds.partition_point(|bound| *bound <= value);
        u8::try_from(reached).unwrap_or(99)
    }

    /// The share of the charts below a value, from 0 to 1, as if those between two percentiles were evenly
    /// distributed, and so those above the last one up to `end`.
    #[must_use]
    pub fn share_below(&self, value: f64, end: f64) -> f64 {
        if value >= end {
            return 1.0;
        }
        let reached = usize::from(self.percent_below(value));
        let lower = reached.checked_sub(1).map_or(0.0, |last| self.lower_bounds[last]);
        let upper = match self.lower_bounds.get(reached) {
            Some(upper) => *upper,
            // Charts with the greatest value are below no bound.
            None if reached < 99 => return 1.0,
            None => end,
        };
        let part = if upper > lower { ((value - lower) / (upper - lower)).clamp(0.0, 1.0) } else { 0.0 };
        (f64::from(u8::try_from(reached).unwrap_or(99)) + part) / 100.0
    }
}

/// The distributions that are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distributions(Vec<Distribution>);

impl Distributions {
    /// That of the charts with as many keys, or of all charts if there are fewer than 100; `None` if there are
    /// fewer than 100 in all, or without a key count if none are known.
    #[must_use]
    pub fn of(&self, measure: Measure, keys: Option<KeyCount>) -> Option<&Distribution> {
        let find = |keys| self.0.iter().find(|one| one.measure == measure && one.keys == keys);
        find(keys).or_else(|| find(None))
    }
}

impl FromIterator<Distribution> for Distributions {
    fn from_iter<T: IntoIterator<Item = Distribution>>(distributions: T) -> Self {
        Self(distributions.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(keys: Option<u8>, lower_bounds: Vec<f64>) -> Distribution {
        let keys = keys.map(|keys| KeyCount::try_from(keys).unwrap());
        Distribution { measure: Measure::Rating, keys, lower_bounds }
    }

    /// The charts have the values 0.5, 1.5, … 99.5.
    #[test]
    fn share_is_that_of_charts_below() {
        let even = distribution(None, (1..=99).map(f64::from).collect());
        for (value, percent, share) in
            [(0.0, 0, 0.0), (0.5, 0, 0.005), (1.0, 1, 0.01), (50.25, 50, 0.5025), (99.5, 99, 0.995)]
        {
            assert_eq!(even.percent_below(value), percent, "{value}");
            assert!((even.share_below(value, 100.0) - share).abs() < 1e-9, "{value}");
        }
        assert!((even.share_below(100.0, 100.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn charts_of_one_value_are_in_one_place() {
        // 40 charts below 3, and 60 at 3.
        let bounds = (1..=40).map(|percent| 3.0 * f64::from(percent) / 40.0).collect();
        let many = distribution(None, bounds);
        assert!((many.share_below(1.5, 6.0) - 0.2).abs() < 1e-9);
        assert!((many.share_below(3.0, 6.0) - 1.0).abs() < 1e-9);
        assert!((distribution(None, Vec::new()).share_below(1.0, 6.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn all_charts_stand_for_those_with_few_of_their_keys() {
        let known: Distributions =
            [distribution(None, vec![1.0]), distribution(Some(4), vec![2.0])].into_iter().collect();
        let keys = |keys: u8| Some(KeyCount::try_from(keys).unwrap());
        for (asked, found) in [(keys(4), keys(4)), (keys(7), None), (None, None)] {
            assert_eq!(known.of(Measure::Rating, asked).unwrap().keys, found, "{asked:?}");
        }
        assert_eq!(known.of(Measure::DensityPeak, keys(4)), None);
    }
}
