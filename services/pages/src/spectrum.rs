//! The charts of a large set in the list: a number on a colour for each.

use chart_index_domain::{Chart, ListedChart};

use crate::format;
use crate::format::named;
use crate::level::Level;

/// The maximum number of charts that are shown: the page of the set has all of them.
const MAX_CHARTS: usize = 48;

/// The charts of a set, from the lowest rating to the highest.
#[derive(Debug)]
pub(crate) struct Spectrum {
    /// Such as `15 charts, 1.20 to 6.80`, or without ratings `15 charts`.
    pub(crate) summary: String,
    pub(crate) groups: Vec<SpectrumGroup>,
    /// The number of charts that are not shown.
    pub(crate) more: usize,
}

/// The charts with a number of keys.
#[derive(Debug)]
pub(crate) struct SpectrumGroup {
    pub(crate) keys: u8,
    pub(crate) charts: Vec<SpectrumChart>,
}

#[derive(Debug)]
pub(crate) struct SpectrumChart {
    pub(crate) hash: String,
    pub(crate) difficulty: String,
    pub(crate) level: Level,
}

impl Spectrum {
    /// The spectrum of charts in the order of [`level::order`](crate::level::order).
    pub(crate) fn new(charts: &[ListedChart]) -> Self {
        let ratings = charts.iter().filter_map(|listed| listed.chart.rating);
        let range = ratings
            .map(|rating| (rating, rating))
            .reduce(|(lowest, highest), (rating, _)| (lowest.min(rating), highest.max(rating)));
        let count = format::counted(charts.len() as u64, "chart");
        let shown = &charts[..charts.len().min(MAX_CHARTS)];
        let groups = shown.chunk_by(|a, b| a.chart.numbers.keys == b.chart.numbers.keys);
        Self {
            summary: range.map_or_else(
                || count.clone(),
                |(lowest, highest)| {
                    format!(
                        "{count}, {} to {}",
                        Level::of_rating(lowest).number,
                        Level::of_rating(highest).number
                    )
                },
            ),
            groups: groups.filter_map(SpectrumGroup::new).collect(),
            more: charts.len() - shown.len(),
        }
    }
}

impl SpectrumGroup {
    fn new(charts: &[ListedChart]) -> Option<Self> {
        let keys = charts.first()?.chart.numbers.keys.get();
        Some(Self { keys, charts: charts.iter().map(|listed| SpectrumChart::new(&listed.chart)).collect() })
    }
}

impl SpectrumChart {
    fn new(chart: &Chart) -> Self {
        Self {
            hash: chart.hash.to_string(),
            difficulty: named(chart.difficulty.clone(), "Unnamed"),
            level: Level::new(chart),
        }
    }
}
