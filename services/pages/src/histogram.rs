//! How the difficulties of charts are distributed, as bars.

use chart_index_domain::{Chart, Distribution, Distributions, Measure, Rating};

use crate::curve::Curve;
use crate::list_query::{Filter, ListQuery};
use crate::{format, level};

#[expect(clippy::cast_possible_truncation, reason = "26")]
const BARS: u16 = Rating::BINS as u16;
const WIDTH: u16 = Rating::BIN_WIDTH;
const HEIGHT: u8 = 48;

/// Bars in a view box of [`BARS`] to their height.
#[derive(Debug)]
pub(crate) struct Histogram {
    pub(crate) bars: Curve,
    /// What is counted, such as `4K charts`.
    pub(crate) caption: String,
    /// The path of the histogram of what the filter finds, if this one is of other charts.
    pub(crate) filtered: Option<String>,
    /// Where the range of a filter begins and ends, in bars from the left.
    pub(crate) range: Option<[String; 2]>,
    /// Where a chart is.
    pub(crate) mark: Option<String>,
}

impl Histogram {
    /// The charts with the keys of a filter, or all if it has several, with the range of its difficulties.
    /// `None` if too few charts are known.
    pub(crate) fn of_filter(known: &Distributions, query: &ListQuery) -> Option<Self> {
        let mut keys = query.search.keys.iter();
        let keys = keys.next().filter(|_| keys.next().is_none());
        let distribution = known.of(Measure::Rating, keys)?;
        let bounds = query.search.chart.rating;
        let range = [bounds.min.unwrap_or(0.0), bounds.max.unwrap_or_else(|| f64::from(BARS * WIDTH))];
        let others = query.of_any_difficulty();
        let has_all = others.filters().into_iter().eq(distribution.keys.map(Filter::Keys));
        let filtered = (!has_all).then(|| others.path_below("/ratings"));
        Some(Self { range: Some(range.map(place)), filtered, ..Self::new(distribution) })
    }

    /// The matching sets, each in the bars of its matching charts.
    #[expect(clippy::cast_precision_loss, reason = "a bar has fewer than 50 heights")]
    pub(crate) fn of_sets(chartsets: &[u64; Rating::BINS]) -> Self {
        let bars = Self::draw(chartsets.map(|number| number as f64), "matching sets".to_owned());
        Self { range: Some([0.0, f64::from(BARS * WIDTH)].map(place)), ..bars }
    }

    /// The charts with as many keys, with a mark at this one.
    pub(crate) fn of_chart(known: &Distributions, chart: &Chart) -> Option<Self> {
        let rating = f64::from(chart.rating?.hundredths());
        let distribution = known.of(Measure::Rating, Some(chart.numbers.keys))?;
        Some(Self { mark: Some(place(rating)), ..Self::new(distribution) })
    }

    /// These charts; `None` if fewer than two have a rating.
    pub(crate) fn of_charts<'chart>(charts: impl Iterator<Item = &'chart Chart>) -> Option<Self> {
        let mut numbers = [0.0; Rating::BINS];
        let mut rated = 0;
        for rating in charts.filter_map(|chart| chart.rating) {
            numbers[rating.bin()] += 1.0;
            rated += 1;
        }
        (rated > 1).then(|| Self::draw(numbers, String::new()))
    }

    fn new(distribution: &Distribution) -> Self {
        let end = f64::from(BARS * WIDTH) / 100.0;
        let below = |bar: u16| distribution.share_below(f64::from(bar * WIDTH) / 100.0, end);
        Self::draw((0..BARS).map(|bar| below(bar + 1) - below(bar)), charts_of(distribution))
    }

    fn draw(lengths: impl IntoIterator<Item = f64>, caption: String) -> Self {
        let colours = (0..BARS).map(|bar| level::colour_of_rating(bar * WIDTH));
        let bars = Curve::draw(&colours.zip(lengths).collect::<Vec<_>>(), HEIGHT);
        Self { bars, caption, filtered: None, range: None, mark: None }
    }
}

/// What the charts of a distribution are called, such as `4K charts`.
pub(crate) fn charts_of(distribution: &Distribution) -> String {
    distribution.keys.map_or_else(|| "all charts".to_owned(), |keys| format!("{}K charts", keys.get()))
}

/// The place of a rating in hundredths, in bars from the left.
fn place(rating: f64) -> String {
    format::decimal((rating / f64::from(WIDTH)).clamp(0.0, f64::from(BARS)), 2)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{KeyCount, Rating};

    use super::*;
    use crate::matching::tests::chart;

    fn known(all: &[Option<u8>]) -> Distributions {
        let of_keys = |keys: &Option<u8>| Distribution {
            measure: Measure::Rating,
            keys: keys.and_then(|keys| KeyCount::try_from(keys).ok()),
            // Half of the charts are below 1, and the others evenly distributed up to 6.5.
            lower_bounds: (1..=99)
                .map(|percent: u8| f64::from(percent))
                .map(
                    |percent| {
                        if percent <= 50.0 { percent / 50.0 } else { 1.0 + 5.5 * (percent - 50.0) / 50.0 }
                    },
                )
                .collect(),
        };
        all.iter().map(of_keys).collect()
    }

    #[test]
    fn bars_are_the_shares_of_the_charts() {
        let histogram = Histogram::new(known(&[None]).of(Measure::Rating, None).unwrap());
        assert_eq!(histogram.caption, "all charts");
        let areas = &histogram.bars.areas;
        // Four of 12.5 %, then 22 of 2.27 %.
        assert_eq!((areas[0].colour, areas[0].path.as_str()), (0, "M0 48V0h4V48"));
        assert_eq!((areas[1].colour, areas[1].path.as_str()), (1, "M4 48V39h2V48"));
        assert_eq!(areas.last().unwrap().colour, 7);
    }

    #[test]
    fn filter_of_one_key_count_has_its_charts() {
        let of = |all: &[Option<u8>], query: &str| {
            let query = ListQuery::parse(query).unwrap().query;
            let histogram = Histogram::of_filter(&known(all), &query);
            histogram.map(|histogram| (histogram.caption, histogram.range.unwrap().join(" ")))
        };
        let expected = |caption: &str, range: &str| Some((caption.to_owned(), range.to_owned()));
        assert_eq!(of(&[None, Some(4)], "keys=4"), expected("4K charts", "0 26"));
        assert_eq!(of(&[None, Some(4)], "keys=4,7&ratingMin=1.1"), expected("all charts", "4.4 26"));
        assert_eq!(of(&[None, Some(4)], "keys=7&ratingMax=3"), expected("all charts", "0 12"));
        assert_eq!(of(&[None], "ratingMin=9"), expected("all charts", "26 26"));
        assert_eq!(of(&[], ""), None);
    }

    #[test]
    fn charts_of_a_page_are_counted() {
        let rated = |rating| Chart { rating: Rating::from_hundredths(rating), ..chart() };
        let charts = [rated(100), rated(124), rated(125), rated(1_500), chart()];
        let areas = Histogram::of_charts(charts.iter()).unwrap().bars.areas;
        let shown: Vec<_> = areas.iter().map(|area| (area.colour, area.path.as_str())).collect();
        assert_eq!(shown, [(1, "M4 48V0h1V24h1V48"), (7, "M25 48V24h1V48")]);
        assert!(Histogram::of_charts(charts[3..].iter()).is_none());
    }

    #[test]
    fn filter_of_other_charts_has_a_histogram_of_its_own() {
        for (query, expected) in [
            ("", None),
            ("ratingMin=1&sort=title&page=2&view=cards", None),
            ("keys=4&ratingMax=5&q=", None),
            ("keys=7", Some("/ratings?keys=7")),
            ("keys=4,7", Some("/ratings?keys=4,7")),
            ("match=chart", Some("/ratings?match=chart")),
            ("q=a+b&keys=4&ratingMin=1&sort=relevance&page=2", Some("/ratings?keys=4&q=a+b")),
        ] {
            let query = ListQuery::parse(query).unwrap().query;
            let histogram = Histogram::of_filter(&known(&[None, Some(4)]), &query).unwrap();
            assert_eq!(histogram.filtered.as_deref(), expected, "{query:?}");
        }
    }

    #[test]
    fn sets_are_counted_in_bars() {
        let mut numbers = [0; Rating::BINS];
        assert!(Histogram::of_sets(&numbers).bars.areas.is_empty());
        (numbers[4], numbers[25]) = (300, 150);
        let histogram = Histogram::of_sets(&numbers);
        let shown: Vec<_> = histogram.bars.areas.iter().map(|area| area.path.as_str()).collect();
        assert_eq!(shown, ["M4 48V0h1V48", "M25 48V24h1V48"]);
        assert_eq!(histogram.range.unwrap(), ["0", "26"]);
    }

    #[test]
    fn chart_is_marked_where_its_rating_is() {
        let mark = |rating| {
            let rated = Chart { rating: Rating::from_hundredths(rating), ..chart() };
            Histogram::of_chart(&known(&[None]), &rated).and_then(|histogram| histogram.mark)
        };
        assert_eq!(mark(310).as_deref(), Some("12.4"));
        assert_eq!(mark(900).as_deref(), Some("26"));
        assert!(Histogram::of_chart(&known(&[None]), &chart()).is_none());
    }
}
