//! How hard a chart is, in numbers, and which patterns it has.

use std::cmp::Reverse;

use chart_index_domain::{Chart, Distributions, Measure, Pattern, Patterns};

use crate::bpm::Bpm;
use crate::histogram::charts_of;
use crate::{format, level};

/// A number of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// What else there is to say, often nothing.
    pub(crate) detail: String,
}

/// The numbers of a chart but its difficulty, those that are computed.
pub(crate) fn facts(chart: &Chart, known: &Distributions) -> Vec<Fact> {
    let numbers = &chart.numbers;
    let fact = |name, value: String, detail: String| Fact { name, value, detail };
    let per_second = |number: f64| format!("{}/s", format::density(number));
    let bpm = Bpm::of_chart(chart);
    let denser =
        above("denser", known, Measure::DensityPeak, chart, numbers.density_peak).unwrap_or_default();
    let held = chart.patterns.filter(|_| numbers.lns > 0).map_or_else(String::new, |patterns| {
        format!("{}, held for {}% of the time", format::count(numbers.lns.into()), patterns.ln_time_share)
    });
    let rows = chart.patterns.filter(|patterns| patterns.rows_per_second_median > 0).map(|patterns| {
        let [median, high] = [patterns.rows_per_second_median, patterns.rows_per_second_p90]
            .map(|hundredths| per_second(f64::from(hundredths) / 100.0));
        fact("Rows", median, format!("at the median, {high} at the 90th percentile"))
    });
    let all = [
        fact("BPM", bpm.main, bpm.others),
        fact("Length", format::length(numbers.length_ms), String::new()),
        fact("Notes", format::count(numbers.notes.into()), String::new()),
        fact("Peak", per_second(numbers.density_peak), denser),
        fact("Average", per_second(numbers.density_avg), String::new()),
        fact("Long notes", format::share(numbers.lns, numbers.notes), held),
    ];
    all.into_iter().chain(rows).collect()
}

/// How the difficulty of a chart compares: its word, and how many charts are easier, if that is known.
pub(crate) fn difficulty(chart: &Chart, known: &Distributions) -> Option<String> {
    let rating = chart.rating?;
    let word = level::word(rating);
    let harder = above("harder", known, Measure::Rating, chart, rating.value());
    Some(harder.map_or_else(|| word.to_owned(), |harder| format!("{word}, {harder}")))
}

fn above(
    adjective: &str,
    known: &Distributions,
    measure: Measure,
    chart: &Chart,
    value: f64,
) -> Option<String> {
    let distribution = known.of(measure, Some(chart.numbers.keys))?;
    let percent = Some(distribution.percent_below(value)).filter(|percent| *percent > 0)?;
    Some(format!("{adjective} than {percent}% of {}", charts_of(distribution)))
}

/// A class of rows in a bar of all rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternPart {
    pub(crate) name: &'static str,
    /// The index of its colour, `.p0` to `.p8` of `style.css`.
    pub(crate) colour: u8,
    /// In percent, and those of the parts before it.
    pub(crate) share: u8,
    pub(crate) before: u8,
    pub(crate) meaning: &'static str,
}

/// The classes of rows that occur, the largest first.
pub(crate) fn pattern_parts(patterns: &Patterns) -> Vec<PatternPart> {
    let mut all: Vec<Pattern> =
        Pattern::ALL.iter().copied().filter(|pattern| patterns.share(*pattern) > 0).collect();
    all.sort_by_key(|pattern| Reverse(patterns.share(*pattern)));
    let mut before = 0;
    let part = |pattern: Pattern| {
        let share = patterns.share(pattern);
        let start = before;
        before += share;
        PatternPart {
            name: pattern.as_str(),
            colour: pattern as u8,
            share,
            before: start,
            meaning: meaning(pattern),
        }
    };
    all.into_iter().map(part).collect()
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
    use chart_index_domain::{Distribution, KeyCount, Rating};

    use super::*;
    use crate::matching::tests::chart;

    #[test]
    fn numbers_that_are_not_computed_are_left_out() {
        let mut chart = chart();
        let values = |chart: &Chart| {
            let facts = facts(chart, &Distributions::default());
            facts.into_iter().map(|fact| (fact.name, fact.value, fact.detail)).collect::<Vec<_>>()
        };
        let numbers = [
            ("BPM", "0", "100–200"),
            ("Length", "1:32", ""),
            ("Notes", "10", ""),
            ("Peak", "12/s", ""),
            ("Average", "5/s", ""),
            ("Long notes", "10%", ""),
        ];
        let expected = numbers.map(|(name, value, detail)| (name, value.to_owned(), detail.to_owned()));
        assert_eq!(values(&chart), expected);
        chart.patterns =
            Some(Patterns { rows_per_second_median: 1_000, ln_time_share: 7, ..Patterns::default() });
        let all = values(&chart);
        assert_eq!(all[5].2, "1, held for 7% of the time");
        assert_eq!(all[6].2, "at the median, 0/s at the 90th percentile");
    }

    #[test]
    fn percentiles_are_named_if_any_chart_is_below() {
        let rated = Chart { rating: Rating::from_hundredths(300), ..chart() };
        // That many percent of the charts are below both numbers of the chart.
        let compared = |percent: Option<u8>| {
            let of_measure = |measure| Distribution {
                measure,
                keys: KeyCount::try_from(7).ok(),
                lower_bounds: vec![1.0; percent.unwrap_or_default().into()],
            };
            let measures = [Measure::Rating, Measure::DensityPeak].into_iter().filter(|_| percent.is_some());
            let known: Distributions = measures.map(of_measure).collect();
            (difficulty(&rated, &known).unwrap(), facts(&rated, &known).remove(3).detail)
        };
        let (harder, denser) = ("Hard, harder than 93% of 7K charts", "denser than 93% of 7K charts");
        assert_eq!(compared(Some(93)), (harder.to_owned(), denser.to_owned()));
        for none in [None, Some(0)] {
            assert_eq!(compared(none), ("Hard".to_owned(), String::new()));
        }
        assert_eq!(difficulty(&chart(), &Distributions::default()), None);
    }

    #[test]
    fn classes_that_occur_are_ordered_by_their_share() {
        let patterns = Patterns { row_shares: [5, 0, 0, 20, 0, 71, 0, 0, 0], ..Patterns::default() };
        let parts: Vec<_> = pattern_parts(&patterns)
            .into_iter()
            .map(|part| (part.name, part.colour, part.share, part.before))
            .collect();
        assert_eq!(parts, [("stream", 5, 71, 0), ("trill", 3, 20, 71), ("jack", 0, 5, 91)]);
    }
}
