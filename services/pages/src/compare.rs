//! `GET /compare`: two charts side by side.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use chart_index_domain::search::ParameterError;
use chart_index_domain::{Chart, ListedChart, NoteHash, Pattern, Rating, ReadError};
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, Resource};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::curve::Curve;
use crate::format;
use crate::layout::Layout;
use crate::list_query::raw_parameters;
use crate::render::render;
use crate::shelf::hash_in;

/// `GET /compare?a=…&b=…`, each a note hash or the address of a chart.
pub(crate) async fn page(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let hashes = parse(&query_string.unwrap_or_default())?;
    let name = [b"compare\0", hashes.map(|hash| *hash.as_bytes()).concat().as_slice()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, hashes).await;
    let body = state.read(&name, Resource::Chart, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

fn parse(query_string: &str) -> Result<[NoteHash; 2], ParameterError> {
    let parameters = raw_parameters(query_string);
    let hash = |name: &'static str| {
        let sent = parameters.iter().find(|(sent, _)| sent == name);
        hash_in(name, sent.map_or("", |(_, value)| value))
    };
    Ok([hash("a")?, hash("b")?])
}

async fn read(state: &PagesState, hashes: [NoteHash; 2]) -> Result<Option<String>, ReadError> {
    let charts = state.store.charts_with_curves(&hashes).await?;
    let [a, b] = charts.as_slice() else { return Ok(None) };
    render(&CompareTemplate::new([a, b])).map(Some)
}

#[derive(Template)]
#[template(path = "compare.html", whitespace = "minimize")]
struct CompareTemplate {
    layout: Layout,
    charts: [Side; 2],
    /// The hash of the second one.
    beside: String,
    /// The length of the longer one.
    length_ms: u32,
    numbers: Vec<Line>,
    patterns: Vec<Line>,
}

/// One of the charts.
struct Side {
    hash: String,
    chart: ChartRow,
    curve: Curve,
    /// The width of the view box of the curve, so that both curves have one scale.
    width: String,
}

/// A number of both charts.
#[derive(Debug, PartialEq)]
struct Line {
    name: &'static str,
    values: [String; 2],
    /// What the second chart has more or less; empty if that is not known.
    difference: String,
}

impl CompareTemplate {
    fn new(charts: [&ListedChart; 2]) -> Self {
        let length_ms = charts.map(|listed| listed.chart.numbers.length_ms).into_iter().max().unwrap_or(0);
        let sides = charts.map(|listed| Side::new(listed, length_ms));
        let [a, b] = charts.map(|listed| &listed.chart);
        Self {
            layout: Layout::not_indexed(format!("{} and {}", sides[0].name(), sides[1].name())),
            beside: sides[1].hash.clone(),
            charts: sides,
            length_ms,
            numbers: numbers([a, b]),
            patterns: patterns([a, b]),
        }
    }
}

impl Side {
    fn new(ListedChart { chart, curve }: &ListedChart, length_ms: u32) -> Self {
        let numbers = &chart.numbers;
        let parts = f64::from(length_ms) / f64::from(numbers.length_ms.max(1));
        Self {
            hash: chart.hash.to_string(),
            chart: ChartRow::new(chart, None),
            curve: curve.as_ref().map(|curve| Curve::figure(curve, numbers)).unwrap_or_default(),
            width: format!("{:.2}", 48.0 * parts.max(1.0)),
        }
    }

    fn name(&self) -> String {
        format!("{} [{}]", self.chart.title, self.chart.difficulty)
    }
}

/// The numbers as they are shown, so that the difference is that of what is shown.
fn numbers(charts: [&Chart; 2]) -> Vec<Line> {
    let of = |name, value: fn(&Chart) -> Option<f64>, format: fn(f64) -> String| {
        Line::new(name, charts.map(value), format)
    };
    vec![
        of("Difficulty", |chart| chart.rating.map(Rating::value), |value| format!("{value:.2}")),
        of("Keys", |chart| Some(chart.numbers.keys.get().into()), |value| format::decimal(value, 0)),
        of("BPM", |chart| Some(tenths(chart.numbers.bpm_main)), format::bpm),
        of("Length", |chart| Some(f64::from(format::whole_seconds(chart.numbers.length_ms))), length),
        of("Notes", |chart| Some(chart.numbers.notes.into()), |value| format::decimal(value, 0)),
        of("Long notes", |chart| Some(chart.numbers.ln_share().into()), percent),
        of("Average/s", |chart| Some(tenths(chart.numbers.density_avg)), format::density),
        of("Peak/s", |chart| Some(tenths(chart.numbers.density_peak)), format::density),
    ]
}

/// The shares of rows of the patterns that one of the charts has.
fn patterns(charts: [&Chart; 2]) -> Vec<Line> {
    let share = |pattern: Pattern| {
        charts.map(|chart| chart.patterns.as_ref().map(|patterns| f64::from(patterns.share(pattern))))
    };
    let lines = Pattern::ALL.iter().map(|pattern| (pattern.as_str(), share(*pattern)));
    let some = lines.filter(|(_, shares)| shares.iter().flatten().any(|share| *share > 0.0));
    some.map(|(name, shares)| Line::new(name, shares, percent)).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths of charts and their differences"
)]
fn length(seconds: f64) -> String {
    format::length_of_seconds(seconds as u32)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn percent(value: f64) -> String {
    format!("{}%", format::decimal(value, 0))
}

impl Line {
    fn new(name: &'static str, values: [Option<f64>; 2], format: impl Fn(f64) -> String) -> Self {
        let difference = match values {
            [Some(a), Some(b)] if format(a) == format(b) => "=".to_owned(),
            [Some(a), Some(b)] => format!("{}{}", if b > a { '+' } else { '−' }, format((b - a).abs())),
            _ => String::new(),
        };
        Self { name, values: values.map(|value| value.map_or_else(|| "–".to_owned(), &format)), difference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::tests::chart;

    #[test]
    fn difference_is_that_of_the_second_chart() {
        for (values, expected) in [
            ([Some(3.1), Some(4.26)], ["3.1", "4.3", "+1.2"]),
            ([Some(120.0), Some(80.0)], ["120", "80", "−40"]),
            ([Some(7.04), Some(7.01)], ["7", "7", "="]),
            ([None, Some(2.0)], ["–", "2", ""]),
        ] {
            let Line { values: [a, b], difference, .. } = Line::new("BPM", values, format::bpm);
            assert_eq!([a.as_str(), &b, &difference], expected, "{values:?}");
        }
        assert_eq!(Line::new("Length", [Some(61.0), Some(92.0)], length).difference, "+0:31");
    }

    #[test]
    fn differences_are_those_of_what_is_shown() {
        let of_density = |density_avg| {
            let mut chart = chart();
            chart.numbers.density_avg = density_avg;
            chart
        };
        let lines = numbers([&of_density(8.36), &of_density(6.74)]);
        let average = lines.iter().find(|line| line.name == "Average/s").unwrap();
        assert_eq!(
            (average.values.each_ref().map(String::as_str), &*average.difference),
            (["8.4", "6.7"], "−1.7")
        );
    }

    #[test]
    fn parameters_are_named() {
        let hash = "a".repeat(64);
        for (query, parameter) in [("", "a"), ("a=x&b=y", "a"), (&*format!("a={hash}"), "b")] {
            assert_eq!(parse(query).unwrap_err().parameter, parameter, "{query}");
        }
        let both = parse(&format!("b=%2Fcharts%2F{}&a={hash}", "B".repeat(64))).unwrap();
        assert_eq!(both.map(|hash| hash.to_string()), [hash, "b".repeat(64)]);
    }
}
