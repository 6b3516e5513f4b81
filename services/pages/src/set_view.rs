//! A chartset of the list, with a line for each chart.

use chart_index_domain::search::{ListItem, SearchQuery};
use chart_index_domain::{Chart, ReadError};
use serde::Deserialize;

use crate::format;
use crate::list_query::escape;
use crate::matching::{has_chart_filters, matches};

/// The most charts of a set that the list shows; its own page shows all.
const MAX_CHARTS: usize = 12;

/// A chartset.
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
    pub(crate) download: Option<String>,
    pub(crate) charts: Vec<ChartLine>,
    /// The number of charts that are not shown.
    pub(crate) more: usize,
    /// Whether no chart satisfies all filters on its own.
    pub(crate) has_no_match: bool,
}

/// A creator, and the list of their sets.
#[derive(Debug)]
pub(crate) struct CreatorLink {
    pub(crate) name: String,
    pub(crate) href: String,
}

/// A chart.
#[derive(Debug)]
pub(crate) struct ChartLine {
    pub(crate) hash: String,
    pub(crate) keys: u8,
    pub(crate) difficulty: String,
    pub(crate) density: String,
    pub(crate) long_notes: String,
    /// An SVG path, empty if it is not known.
    pub(crate) curve: String,
    /// Whether it satisfies all filters; false without filters of charts.
    pub(crate) is_match: bool,
}

/// A list item of the API.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    id: String,
    title: String,
    artist: String,
    creator: String,
    keys: Vec<u8>,
    bpm_min: f64,
    bpm_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    density_max: f64,
    chart_count: u64,
    download_url: Option<String>,
}

/// A chart with the path of its curve.
#[derive(Debug)]
pub(crate) struct DrawnChart {
    pub(crate) chart: Chart,
    pub(crate) curve: String,
}

impl SetView {
    /// A chartset with the charts of its detail, which may be missing if it has changed since the search.
    pub(crate) fn new(
        item: &ListItem,
        charts: Vec<DrawnChart>,
        search: &SearchQuery,
    ) -> Result<Self, ReadError> {
        let item: Item = serde_json::from_str(item.as_str())
            .map_err(|error| ReadError::Failed { operation: "read list item", source: error.into() })?;
        let creators = creators(&item.creator, &charts);
        let (charts, more, has_no_match) = chart_lines(charts, search);
        Ok(Self {
            creators,
            title: named(item.title, "Untitled"),
            artist: named(item.artist, "Unknown artist"),
            bpm: format::bpm_range(item.bpm_min, item.bpm_max),
            length: format::length_range(item.length_min_ms, item.length_max_ms),
            density: format::density(item.density_max),
            keys: item.keys.iter().map(|keys| format!("{keys}K")).collect::<Vec<_>>().join(" "),
            chart_count: format::counted(item.chart_count, "chart"),
            download: item.download_url,
            id: item.id,
            charts,
            more,
            has_no_match,
        })
    }
}

/// A name, or what stands for an empty one.
pub(crate) fn named(name: String, placeholder: &str) -> String {
    if name.is_empty() { placeholder.to_owned() } else { name }
}

/// The creators of the charts, most charts first. Without charts, the creators as the list item has them.
fn creators(joined: &str, charts: &[DrawnChart]) -> Vec<CreatorLink> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for name in charts.iter().map(|drawn| drawn.chart.creator.as_str()).filter(|name| !name.is_empty()) {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if names.is_empty() && !joined.is_empty() {
        names.push((joined, 1));
    }
    names.into_iter().map(|(name, _)| CreatorLink::new(name)).collect()
}

impl CreatorLink {
    /// A link to the sets of a creator.
    pub(crate) fn new(name: &str) -> Self {
        let searched: String = name.chars().take(MAX_FILTER_CHARACTERS).collect();
        Self { name: name.to_owned(), href: format!("/?creator={}", escape(searched.trim())) }
    }
}

/// The longest text that the list accepts as a filter.
pub(crate) const MAX_FILTER_CHARACTERS: usize = 200;

/// The charts, those that satisfy all filters first; how many are left out; and whether filters apply and none matches.
fn chart_lines(charts: Vec<DrawnChart>, search: &SearchQuery) -> (Vec<ChartLine>, usize, bool) {
    let is_filtered = has_chart_filters(search) && !charts.is_empty();
    let (mut lines, others): (Vec<_>, Vec<_>) =
        charts.into_iter().partition(|drawn| is_filtered && matches(search, &drawn.chart));
    let number_of_matches = lines.len();
    lines.extend(others);
    let more = lines.len().saturating_sub(MAX_CHARTS);
    lines.truncate(MAX_CHARTS);
    let line = |(index, drawn): (usize, DrawnChart)| ChartLine::new(drawn, index < number_of_matches);
    (lines.into_iter().enumerate().map(line).collect(), more, is_filtered && number_of_matches == 0)
}

impl ChartLine {
    fn new(DrawnChart { chart, curve }: DrawnChart, is_match: bool) -> Self {
        let numbers = chart.numbers;
        Self {
            hash: chart.hash.to_string(),
            keys: numbers.keys.get(),
            difficulty: named(chart.difficulty, "Unnamed"),
            density: format::density(numbers.density_peak),
            long_notes: format::share(numbers.lns, numbers.notes),
            curve,
            is_match,
        }
    }
}
