//! `GET /creators/{name}`: the charts of a creator.
//!
//! A name is compared exactly, unlike a part of it in the filter of the list, which ignores case: a page says
//! what one creator has made, and two who differ in case may be two people. It links to the filter.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::{CreatorChart, ReadError, text};
use chart_index_http::{ApiError, CachePolicy, MediaType, PathParam, RequestHeaders, Resource};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::feed::Feed;
use crate::histogram::Histogram;
use crate::layout::Layout;
use crate::render::render;
use crate::{creators, format, level};

/// The maximum number of charts in sets that are read: a real creator has fewer.
const MAX_READ: u32 = 1_000;
/// The maximum number of charts that are listed, which are most of the page.
const MAX_LISTED: usize = 200;
const MAX_ENTRIES: usize = 30;
/// The maximum number of months of a timeline; a longer one has years.
const MAX_MONTHS: usize = 12;

/// `GET /creators/{name}`.
pub(crate) async fn page(
    State(state): State<Arc<PagesState>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let key = [b"creator\0", name.as_bytes()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, &name).await;
    let body = state.read(&key, Resource::Creator, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /creators/{name}/feed.atom`: the charts that came into the index last.
pub(crate) async fn feed(
    State(state): State<Arc<PagesState>>,
    PathParam(name): PathParam,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let key = [b"feed of creator\0", name.as_bytes()].concat();
    let fill = async move |state: Arc<PagesState>| read_feed(&state, &name).await;
    let body = state.read(&key, Resource::Creator, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Atom))
}

async fn read(state: &PagesState, name: &str) -> Result<Option<String>, ReadError> {
    let Some(path) = creators::path(name) else { return Ok(None) };
    let occurrences = state.store.charts_of_creator(name, MAX_READ).await?;
    if occurrences.is_empty() {
        return Ok(None);
    }
    render(&CreatorTemplate::new(name, path, occurrences, state)).map(Some)
}

async fn read_feed(state: &PagesState, name: &str) -> Result<Option<String>, ReadError> {
    let Some(path) = creators::path(name) else { return Ok(None) };
    let mut charts = distinct(state.store.charts_of_creator(name, MAX_READ).await?);
    if charts.is_empty() {
        return Ok(None);
    }
    charts.truncate(MAX_ENTRIES);
    let hashes: Vec<_> = charts.iter().map(|chart| chart.listed.chart.hash).collect();
    let changed = state.store.changed_times(&hashes).await?;
    let feed = Feed {
        title: format!("Chart Index: charts by {name}"),
        path: feed_path(&path),
        name: path.trim_start_matches('/').replace('/', ":"),
        page: path,
    };
    feed.of_charts(charts.iter().map(|chart| &chart.listed.chart), &changed, state.site()).map(Some)
}

fn feed_path(page: &str) -> String {
    format!("{page}/feed.atom")
}

/// Each chart once, as it is in one of its sets.
fn distinct(occurrences: Vec<CreatorChart>) -> Vec<CreatorChart> {
    let mut seen = HashSet::new();
    occurrences.into_iter().filter(|chart| seen.insert(chart.listed.chart.hash)).collect()
}

#[derive(Template)]
#[template(path = "creator.html", whitespace = "minimize")]
struct CreatorTemplate {
    layout: Layout,
    name: String,
    facts: String,
    /// The keys of its charts.
    keys: Vec<KeyCharts>,
    /// The list of all sets with the name.
    list: String,
    histogram: Option<Histogram>,
    timeline: Vec<Period>,
    charts: Vec<ChartRow>,
    /// How many are not listed, if there are any.
    more: Option<String>,
}

/// The number of charts with as many keys.
struct KeyCharts {
    keys: u8,
    charts: usize,
}

/// A month or a year, and the charts that came into the index in it.
#[derive(Debug, PartialEq)]
struct Period {
    /// Such as `2026-11` or `2026`.
    name: String,
    charts: usize,
    /// In percent of the period with most charts.
    share: usize,
}

impl CreatorTemplate {
    fn new(name: &str, path: String, occurrences: Vec<CreatorChart>, state: &PagesState) -> Self {
        let is_partial = occurrences.len() >= MAX_READ as usize;
        let sets: HashSet<_> = occurrences.iter().map(|chart| chart.chartset_id).collect();
        let mut charts = distinct(occurrences);
        let facts = format!(
            "{}{} in {}",
            if is_partial { "At least " } else { "" },
            format::counted(charts.len() as u64, "chart"),
            format::counted(sets.len() as u64, "set")
        );
        let mut keys: BTreeMap<u8, usize> = BTreeMap::new();
        for chart in &charts {
            *keys.entry(chart.listed.chart.numbers.keys.get()).or_default() += 1;
        }
        let timeline = timeline(charts.iter().map(|chart| chart.first_seen_ms));
        let histogram = Histogram::of_charts(charts.iter().map(|chart| &chart.listed.chart));
        let more = charts.len().saturating_sub(MAX_LISTED) as u64;
        charts.truncate(MAX_LISTED);
        charts.sort_by_cached_key(|chart| text::sort_key(&chart.listed.chart.title));
        for song in charts.chunk_by_mut(|a, b| a.listed.chart.title == b.listed.chart.title) {
            song.sort_by(|a, b| level::order(&a.listed.chart, &b.listed.chart));
        }
        Self {
            layout: Layout {
                description: format!("Charts by {name}: {facts}"),
                feed: Some(feed_path(&path)),
                ..Layout::new(format!("Charts by {name}"), path, state.settings.public_url.as_ref())
            },
            list: creators::list_path(name),
            name: name.to_owned(),
            facts,
            keys: keys.into_iter().map(|(keys, charts)| KeyCharts { keys, charts }).collect(),
            histogram,
            timeline,
            charts: charts
                .iter()
                .map(|CreatorChart { listed, .. }| ChartRow::new(&listed.chart, listed.curve.as_ref()))
                .collect(),
            more: (more > 0).then(|| format::counted(more, "chart")),
        }
    }
}

/// The charts of each month in which one came into the index; of each year, if there are many months.
fn timeline(first_seen_ms: impl Iterator<Item = i64>) -> Vec<Period> {
    let dates: Vec<_> = first_seen_ms.map(format::date).collect();
    let of_parts = |length: usize| {
        let mut periods: BTreeMap<&str, usize> = BTreeMap::new();
        for date in &dates {
            *periods.entry(date.get(..length).unwrap_or(date)).or_default() += 1;
        }
        periods
    };
    let months = of_parts("2026-11".len());
    let periods = if months.len() <= MAX_MONTHS { months } else { of_parts("2026".len()) };
    let most = periods.values().copied().max().unwrap_or(1);
    let period = |(name, charts): (&str, usize)| Period {
        name: name.to_owned(),
        charts,
        share: (100 * charts).div_ceil(most),
    };
    periods.into_iter().map(period).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn timeline_has_months_or_years() {
        let shown = |days: &[i64]| {
            let periods = timeline(days.iter().map(|day| day * DAY_MS));
            periods
                .iter()
                .map(|period| format!("{} {} {}", period.name, period.charts, period.share))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&[0, 1, 40]), ["1970-01 2 100", "1970-02 1 50"]);
        let months: Vec<_> = (0..24).map(|month| 31 * month).collect();
        assert_eq!(shown(&months), ["1970 12 100", "1971 12 100"]);
    }
}
