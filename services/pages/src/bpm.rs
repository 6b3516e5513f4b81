//! Beats per minute as the pages show them: the main value first.

use chart_index_domain::Chart;

use crate::format;

/// The main BPM of charts, and how far others are from it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bpm {
    /// Such as `174`.
    pub(crate) main: String,
    /// Such as `87–348`, or `varies`; empty without other values.
    pub(crate) others: String,
}

/// Values below and above these are gimmicks rather than tempos.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 10.0..=2_000.0;

impl Bpm {
    pub(crate) fn of_chart(chart: &Chart) -> Self {
        let numbers = &chart.numbers;
        Self::of_charts((numbers.bpm_min, numbers.bpm_max), std::iter::once(chart))
    }

    /// The main values of charts within this range; without any charts, the range. The list sorts by the
    /// greatest one ([`Sort::MainBpm`](chart_index_domain::search::Sort::MainBpm)).
    pub(crate) fn of_charts<'a>((min, max): (f64, f64), charts: impl Iterator<Item = &'a Chart>) -> Self {
        let range = format::bpm_range(min, max);
        let of_charts = charts.map(|chart| chart.numbers.bpm_main).map(|main| (main, main));
        let all = of_charts.reduce(|(least, most), (main, _)| (least.min(main), most.max(main)));
        let of_main = all.map_or_else(|| range.clone(), |(least, most)| format::bpm_range(least, most));
        let others = if of_main == range {
            String::new()
        } else if PLAUSIBLE.contains(&min) && PLAUSIBLE.contains(&max) {
            range
        } else {
            "varies".to_owned()
        };
        Self { main: of_main, others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::tests::chart;

    #[test]
    fn main_value_is_first() {
        let with_main = |bpm_main| {
            let mut chart = chart();
            chart.numbers.bpm_main = bpm_main;
            chart
        };
        for (range, mains, main, others) in [
            ((174.0, 174.0), [174.0, 174.0], "174", ""),
            ((87.0, 348.0), [174.0, 174.0], "174", "87–348"),
            ((87.0, 174.0), [87.0, 174.0], "87–174", ""),
            ((0.1, 275_854.8), [186.0, 186.0], "186", "varies"),
        ] {
            let charts = mains.map(with_main);
            let bpm = Bpm::of_charts(range, charts.iter());
            assert_eq!((bpm.main.as_str(), bpm.others.as_str()), (main, others));
        }
        assert_eq!(Bpm::of_charts((87.0, 174.0), std::iter::empty()).main, "87–174");
    }
}
