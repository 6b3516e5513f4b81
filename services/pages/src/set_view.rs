//! A chartset of the list, with a line for each chart.

use chart_index_domain::search::{ListItem, SearchQuery};
use chart_index_domain::{ChartsetId, ListedChart, ListedCharts, ReadError};
use serde::Deserialize;

use crate::creators::CreatorLink;
use crate::filter_form::source_name;
use crate::format::named;
use crate::level::Level;
use crate::matching::ChartMatcher;
use crate::spectrum::Spectrum;
use crate::{creators, curve, format, level};

/// The maximum number of lines of charts of a set in the list; its own page shows all of them.
const MAX_CHARTS: usize = 12;

/// A chartset in the list, with some of its charts.
#[derive(Debug)]
pub(crate) struct SetView {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) artist: String,
    pub(crate) creators: Vec<CreatorLink>,
    pub(crate) bpm: String,
    pub(crate) length: String,
    pub(crate) density: String,
    /// Such as `4K 7K`.
    pub(crate) keys: String,
    pub(crate) chart_count: String,
    /// The kind of its source, if it has a public one, and the day of its last change in the index:
    /// `Alpha set · 2026-11-22`.
    pub(crate) origin: String,
    pub(crate) download: Option<String>,
    /// All charts of a large set, whose lines are only those that satisfy the filters.
    pub(crate) spectrum: Option<Spectrum>,
    pub(crate) charts: Vec<ChartLine>,
    /// The number of charts that have no line because there are too many.
    pub(crate) more: usize,
    /// Whether no chart satisfies all filters on its own.
    pub(crate) has_no_match: bool,
}

/// The line of a chart in a [`SetView`].
#[derive(Debug)]
pub(crate) struct ChartLine {
    pub(crate) hash: String,
    pub(crate) level: Option<Level>,
    pub(crate) keys: u8,
    pub(crate) difficulty: String,
    pub(crate) density: String,
    pub(crate) long_notes: String,
    /// An SVG path, empty if it is not known.
    pub(crate) curve: String,
    /// Whether it satisfies all filters; false without filters of charts.
    pub(crate) is_match: bool,
}

/// The fields of a list item of the API that the list shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetItem {
    id: String,
    title: String,
    artist: String,
    creator: String,
    source_kind: Option<String>,
    keys: Vec<u8>,
    bpm_min: f64,
    bpm_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    density_max: f64,
    chart_count: u64,
    download_url: Option<String>,
}

impl SetItem {
    /// Reads a list item, as all search engines return it.
    pub(crate) fn read(item: &ListItem) -> Result<Self, ReadError> {
        serde_json::from_str(item.as_str())
            .map_err(|error| ReadError::Failed { operation: "read list item", source: error.into() })
    }

    /// The id of the chartset; `None` if it is malformed, which no engine returns.
    pub(crate) fn id(&self) -> Option<ChartsetId> {
        self.id.parse().ok()
    }
}

impl SetView {
    /// A chartset with the charts of its detail, or without them if they were not read or it has changed since
    /// the search.
    pub(crate) fn new(item: SetItem, listed: Option<ListedCharts>, search: &SearchQuery) -> Self {
        let source =
            item.source_kind.and_then(|kind| kind.parse().ok()).map(|kind| source_name(kind).to_owned());
        let updated = listed.as_ref().map(|listed| format::date(listed.updated_at_ms));
        let mut charts = listed.map(|listed| listed.charts).unwrap_or_default();
        charts.sort_by_key(|listed| level::order(&listed.chart));
        let spectrum = if charts.len() > MAX_CHARTS { Spectrum::new(&charts) } else { None };
        let creators =
            creators::links(&item.creator, charts.iter().map(|listed| listed.chart.creator.as_str()));
        let (charts, more, has_no_match) = chart_lines(charts, search, spectrum.is_some());
        Self {
            creators,
            title: named(item.title, "Untitled"),
            artist: named(item.artist, "Unknown artist"),
            bpm: format::bpm_range(item.bpm_min, item.bpm_max),
            length: format::length_range(item.length_min_ms, item.length_max_ms),
            density: format::density(item.density_max),
            keys: item.keys.iter().map(|keys| format!("{keys}K")).collect::<Vec<_>>().join(" "),
            chart_count: format::counted(item.chart_count, "chart"),
            origin: source.into_iter().chain(updated).collect::<Vec<_>>().join(" · "),
            download: item.download_url,
            id: item.id,
            spectrum,
            charts,
            more,
            has_no_match,
        }
    }
}

/// The charts, those that satisfy all filters first or only them; how many are left out; and whether filters
/// apply and none matches.
fn chart_lines(
    charts: Vec<ListedChart>,
    search: &SearchQuery,
    only_matches: bool,
) -> (Vec<ChartLine>, usize, bool) {
    let matcher = ChartMatcher::new(search);
    let is_filtered = matcher.is_some() && !charts.is_empty();
    let (mut lines, others): (Vec<_>, Vec<_>) = charts
        .into_iter()
        .partition(|listed| matcher.as_ref().is_some_and(|matcher| matcher.matches(&listed.chart)));
    let number_of_matches = lines.len();
    if !only_matches {
        lines.extend(others);
    }
    let more = lines.len().saturating_sub(MAX_CHARTS);
    lines.truncate(MAX_CHARTS);
    let line = |(index, listed): (usize, ListedChart)| ChartLine::new(listed, index < number_of_matches);
    (lines.into_iter().enumerate().map(line).collect(), more, is_filtered && number_of_matches == 0)
}

impl ChartLine {
    fn new(ListedChart { chart, curve }: ListedChart, is_match: bool) -> Self {
        let numbers = chart.numbers;
        Self {
            hash: chart.hash.to_string(),
            level: Level::of_chart(&chart),
            keys: numbers.keys.get(),
            difficulty: named(chart.difficulty, "Unnamed"),
            density: format::density(numbers.density_peak),
            long_notes: format::share(numbers.lns, numbers.notes),
            curve: curve.as_ref().map(curve::in_line).unwrap_or_default(),
            is_match,
        }
    }
}
