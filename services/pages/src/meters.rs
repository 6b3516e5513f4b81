//! How hard a chart is, as numbers with bars.

use std::cmp::Reverse;

use chart_index_domain::{Chart, Pattern, Patterns, Percentiles};

use crate::format;

/// A number with a bar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// The length of the bar, in percent.
    pub(crate) share: u8,
    pub(crate) meaning: String,
}

/// Where the bars of difficulties and of densities in notes per second end: hardly any chart has more.
const TOP_RATING: f64 = 8.0;
const TOP_DENSITY: f64 = 40.0;

impl Meter {
    fn new(name: &'static str, value: String, of_one: f64, meaning: impl Into<String>) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
        let share = (of_one.clamp(0.0, 1.0) * 100.0).round() as u8;
        Self { name, value, share, meaning: meaning.into() }
    }
}

/// The numbers of a chart, those that are computed.
pub(crate) fn of_chart(chart: &Chart, percentiles: Percentiles) -> Vec<Meter> {
    let numbers = &chart.numbers;
    let density = |name, density: f64, meaning: Option<String>, usual: &str| {
        let meaning = meaning.unwrap_or_else(|| usual.to_owned());
        Meter::new(name, format!("{}/s", format::density(density)), density / TOP_DENSITY, meaning)
    };
    let above = |adjective: &str, percentile: Option<u8>| {
        let percent = percentile.filter(|percent| *percent > 0)?;
        Some(format!("{adjective} than {percent}% of {}K charts", numbers.keys.get()))
    };
    let rating = chart.rating.map(|rating| {
        let value = rating.value();
        let meaning = above("harder", percentiles.rating);
        let meaning = meaning.unwrap_or_else(|| "computed from the notes".to_owned());
        Meter::new("Difficulty", format!("{value:.2}"), value / TOP_RATING, meaning)
    });
    let denser = above("denser", percentiles.density_peak);
    let held = chart.patterns.map(|patterns| format!(", held for {}% of the time", patterns.ln_time_share));
    let long_notes = Meter::new(
        "Long notes",
        format::share(numbers.lns, numbers.notes),
        f64::from(numbers.lns) / f64::from(numbers.notes.max(1)),
        format!("of the notes{}", held.unwrap_or_default()),
    );
    let per_second = |hundredths: u16| f64::from(hundredths) / 100.0;
    let rows = chart.patterns.filter(|patterns| patterns.rows_per_second_median > 0).map(|patterns| {
        let [median, high] = [patterns.rows_per_second_median, patterns.rows_per_second_p90].map(per_second);
        let meaning = format!("rows at the median, {}/s at the 90th percentile", format::density(high));
        Meter::new("Speed", format!("{}/s", format::density(median)), median / TOP_DENSITY, meaning)
    });
    let numbers = [
        density("Peak", numbers.density_peak, denser, "notes in the densest second"),
        density("Average", numbers.density_avg, None, "notes over the whole length"),
        long_notes,
    ];
    rating.into_iter().chain(numbers).chain(rows).collect()
}

/// The classes of rows that occur, the largest first.
pub(crate) fn of_patterns(patterns: &Patterns) -> Vec<Meter> {
    let meter = |pattern: &Pattern| {
        let share = patterns.share(*pattern);
        Meter::new(pattern.as_str(), format!("{share}%"), f64::from(share) / 100.0, meaning(*pattern))
    };
    let mut meters: Vec<_> = Pattern::ALL.iter().map(meter).filter(|meter| meter.share > 0).collect();
    meters.sort_by_key(|meter| Reverse(meter.share));
    meters
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
    use chart_index_domain::Rating;

    use super::*;
    use crate::matching::tests::chart;

    fn values(meters: &[Meter]) -> Vec<(&str, &str, u8)> {
        meters.iter().map(|meter| (meter.name, meter.value.as_str(), meter.share)).collect()
    }

    #[test]
    fn numbers_that_are_not_computed_have_no_bar() {
        let mut chart = chart();
        let numbers = [("Peak", "12/s", 30), ("Average", "5/s", 13), ("Long notes", "10%", 10)];
        assert_eq!(values(&of_chart(&chart, Percentiles::default())), numbers);
        chart.rating = Rating::from_hundredths(900);
        chart.patterns = Some(Patterns { rows_per_second_median: 1_000, ..Patterns::default() });
        let all = [&[("Difficulty", "9.00", 100)], numbers.as_slice(), &[("Speed", "10/s", 25)]].concat();
        assert_eq!(values(&of_chart(&chart, Percentiles::default())), all);
    }

    #[test]
    fn percentiles_are_named_if_any_chart_is_below() {
        let chart = Chart { rating: Rating::from_hundredths(300), ..chart() };
        let meanings = |rating, density_peak| {
            let meters = of_chart(&chart, Percentiles { rating, density_peak });
            meters.into_iter().take(2).map(|meter| meter.meaning).collect::<Vec<_>>()
        };
        assert_eq!(
            meanings(Some(93), Some(99)),
            ["harder than 93% of 7K charts", "denser than 99% of 7K charts"]
        );
        for none in [None, Some(0)] {
            assert_eq!(meanings(none, none), ["computed from the notes", "notes in the densest second"]);
        }
    }

    #[test]
    fn classes_that_occur_are_ordered_by_their_share() {
        let patterns = Patterns { row_shares: [5, 0, 0, 20, 0, 71, 0, 0, 0], ..Patterns::default() };
        let meters = of_patterns(&patterns);
        assert_eq!(values(&meters), [("stream", "71%", 71), ("trill", "20%", 20), ("jack", "5%", 5)]);
    }
}
