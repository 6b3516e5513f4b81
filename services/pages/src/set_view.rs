//! The chartsets of a list page, with a line for each chart.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chart_index_domain::search::{ListItem, SearchQuery, Sort};
use chart_index_domain::{
    Chartset, ChartsetCopy, ChartsetId, ListedChart, ListedCharts, Pattern, Patterns, ReadError,
};
use serde::Deserialize;

use crate::bpm::Bpm;
use crate::creators::CreatorLink;
use crate::curve::Curve;
use crate::filter_form::source_name;
use crate::format::named;
use crate::level::Level;
use crate::matching::ChartMatcher;
use crate::spectrum::Spectrum;
use crate::{creators, format, level};

/// The maximum number of lines of charts of a set in the list. A larger set has a [`Spectrum`].
const MAX_CHARTS: usize = 12;

/// The least shares that a line names, in percent: of rows with a pattern, and of long notes.
const NOTABLE_ROW_SHARE: u8 = 8;
const NOTABLE_LN_SHARE: u8 = 10;

/// A chartset in the list, with some of its charts.
#[derive(Debug)]
pub(crate) struct SetView {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) artist: String,
    pub(crate) creators: Vec<CreatorLink>,
    pub(crate) bpm: Bpm,
    pub(crate) length: String,
    pub(crate) keys: Vec<u8>,
    /// The colour of its most difficult chart.
    pub(crate) colour: usize,
    pub(crate) chart_count: String,
    pub(crate) download: Option<String>,
    /// All charts of a large set, whose lines are only those that satisfy the filters.
    pub(crate) spectrum: Option<Spectrum>,
    pub(crate) charts: Vec<ChartLine>,
    /// The number of charts that satisfy the filters and have no line because there are too many.
    pub(crate) more: usize,
    /// Other sets with the same charts: those of this page, which have no place of their own, and of others.
    pub(crate) also_in: Vec<SameSet>,
    /// Whether no chart satisfies all filters on its own.
    pub(crate) has_no_match: bool,
}

/// A chartset with the charts of another one.
#[derive(Debug)]
pub(crate) struct SameSet {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Its public source, such as `Beta pack 101`.
    pub(crate) source: Option<String>,
}

/// The line of a chart in a [`SetView`].
#[derive(Debug)]
pub(crate) struct ChartLine {
    pub(crate) hash: String,
    pub(crate) level: Level,
    pub(crate) keys: u8,
    pub(crate) difficulty: String,
    /// The patterns that most of its rows have, at most two.
    pub(crate) patterns: Vec<PatternShare>,
    /// The share of long notes, if it is notable.
    pub(crate) long_notes: Option<String>,
    pub(crate) density_peak: String,
    /// The number of its notes, instead of its density if the list is sorted by it.
    pub(crate) notes: Option<String>,
    pub(crate) curve: Curve,
    /// Whether it satisfies all filters; false without filters of charts.
    pub(crate) is_match: bool,
}

/// A pattern, and the rows that have it in percent.
#[derive(Debug)]
pub(crate) struct PatternShare {
    pub(crate) name: &'static str,
    pub(crate) percent: u8,
}

/// The fields of a list item of the API that the list shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetItem {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) artist: String,
    creator: String,
    keys: Vec<u8>,
    bpm_min: f64,
    bpm_max: f64,
    length_min_ms: u32,
    length_max_ms: u32,
    chart_count: u64,
    download_url: Option<String>,
}

impl SetItem {
    /// Reads a list item, as all search engines return it.
    pub(crate) fn read(item: &ListItem) -> Result<Self, ReadError> {
        serde_json::from_str(item.as_str())
            .map_err(|error| ReadError::Failed { operation: "read list item", source: error.into() })
    }

    /// The item of a chartset.
    pub(crate) fn of(chartset: &Chartset) -> Result<Self, ReadError> {
        let item = ListItem::new(chartset)
            .map_err(|error| ReadError::Failed { operation: "write list item", source: error.into() })?;
        Self::read(&item)
    }

    /// The id of the chartset; `None` if it is malformed, which no engine returns.
    pub(crate) fn id(&self) -> Option<ChartsetId> {
        self.id.parse().ok()
    }
}

impl SetView {
    /// A chartset with the charts of its detail, or without them if they were not read or it has changed since
    /// the search.
    fn new(item: SetItem, mut charts: Vec<ListedChart>, search: &SearchQuery) -> Self {
        charts.sort_by(|a, b| level::order(&a.chart, &b.chart));
        let colour = charts.iter().map(|listed| Level::new(&listed.chart).colour).max().unwrap_or_default();
        let spectrum = (charts.len() > MAX_CHARTS).then(|| Spectrum::new(&charts));
        let creators =
            creators::links(&item.creator, charts.iter().map(|listed| listed.chart.creator.as_str()));
        let bpm = Bpm::of_charts((item.bpm_min, item.bpm_max), charts.iter().map(|listed| &listed.chart));
        let (charts, more, has_no_match) = chart_lines(charts, search, spectrum.is_some());
        Self {
            creators,
            title: named(item.title, "Untitled"),
            artist: named(item.artist, "Unknown artist"),
            bpm,
            length: format::length_range(item.length_min_ms, item.length_max_ms),
            keys: item.keys,
            colour,
            chart_count: format::counted(item.chart_count, "chart"),
            download: item.download_url,
            id: item.id,
            spectrum,
            charts,
            more,
            also_in: Vec::new(),
            has_no_match,
        }
    }

    /// The chartsets of a page with their charts. Those with the same charts are folded into the first of them,
    /// which names all copies.
    pub(crate) fn all(
        items: Vec<SetItem>,
        listed: Vec<ListedCharts>,
        copies: Vec<ChartsetCopy>,
        search: &SearchQuery,
    ) -> Vec<Self> {
        let mut charts_of: HashMap<_, _> = listed.into_iter().map(|set| (set.id, set.charts)).collect();
        let mut sets: Vec<Self> = Vec::with_capacity(items.len());
        let mut shown = HashSet::new();
        for item in items {
            let id = item.id();
            let is_shown = |copy: &ChartsetCopy| Some(copy.id) == id && shown.contains(&copy.copy_of);
            if !copies.iter().any(is_shown) {
                let charts = id.and_then(|id| charts_of.remove(&id)).unwrap_or_default();
                sets.push(Self::new(item, charts, search));
                shown.extend(id);
            }
        }
        for copy in copies {
            let copy_of = copy.copy_of.to_string();
            if let Some(set) = sets.iter_mut().find(|set| set.id == copy_of) {
                set.also_in.push(SameSet::new(copy));
            }
        }
        sets
    }
}

impl SameSet {
    fn new(copy: ChartsetCopy) -> Self {
        let source = copy.source.map(|source| format!("{} {}", source_name(source.kind), source.reference));
        Self { id: copy.id.to_string(), title: named(copy.title, "Untitled"), source }
    }
}

/// The patterns of most rows, the largest first. Smaller shares say little of how a chart plays.
fn dominant_patterns(patterns: &Patterns) -> Vec<PatternShare> {
    let share =
        |pattern: &Pattern| PatternShare { name: pattern.as_str(), percent: patterns.share(*pattern) };
    let mut shares: Vec<_> =
        Pattern::ALL.iter().map(share).filter(|share| share.percent >= NOTABLE_ROW_SHARE).collect();
    shares.sort_by_key(|share| Reverse(share.percent));
    shares.truncate(2);
    shares
}

/// The charts, or only those that satisfy all filters; how many of these are left out; and whether filters
/// apply and none matches.
fn chart_lines(
    charts: Vec<ListedChart>,
    search: &SearchQuery,
    only_matches: bool,
) -> (Vec<ChartLine>, usize, bool) {
    let matcher = ChartMatcher::new(search);
    let is_filtered = matcher.is_some() && !charts.is_empty();
    let is_match =
        |listed: &ListedChart| matcher.as_ref().is_some_and(|matcher| matcher.matches(&listed.chart));
    let lines = charts.into_iter().map(|listed| ChartLine::new(is_match(&listed), search.sort, listed));
    let mut lines: Vec<_> = lines.filter(|line| line.is_match || !only_matches).collect();
    let has_no_match = is_filtered && lines.iter().all(|line| !line.is_match);
    let more = lines.len().saturating_sub(MAX_CHARTS);
    lines.truncate(MAX_CHARTS);
    (lines, more, has_no_match)
}

impl ChartLine {
    fn new(is_match: bool, sort: Sort, ListedChart { chart, curve }: ListedChart) -> Self {
        let numbers = chart.numbers;
        Self {
            hash: chart.hash.to_string(),
            level: Level::new(&chart),
            keys: numbers.keys.get(),
            difficulty: named(chart.difficulty, "Unnamed"),
            patterns: chart.patterns.as_ref().map(dominant_patterns).unwrap_or_default(),
            long_notes: (numbers.ln_share() >= NOTABLE_LN_SHARE)
                .then(|| format::share(numbers.lns, numbers.notes)),
            density_peak: format::density(numbers.density_peak),
            notes: (sort == Sort::Notes).then(|| format::count(numbers.notes.into())),
            curve: curve.as_ref().map(|curve| Curve::in_line(curve, &numbers)).unwrap_or_default(),
            is_match,
        }
    }
}
