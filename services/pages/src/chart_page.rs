//! `GET /charts/{hash}`: a chart, with every chartset that holds it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chart_index_domain::search::{Bounds, Direction, Sort};
use chart_index_domain::{
    Chart, ChartInChartset, ChartPage, Distributions, ListedChart, NoteHash, Pattern, ReadError,
    SimilarChart, VariantTiming,
};
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, Resource};
use chart_index_store::{ChartVariant, ChartVariants, VariantRequest};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::creators::CreatorLink;
use crate::curve::Curve;
use crate::filter_form::source_name;
use crate::format::named;
use crate::histogram::Histogram;
use crate::layout::Layout;
use crate::list_query::ListQuery;
use crate::meters::{Fact, PatternPart};
use crate::moments::Moment;
use crate::page_hash::PageHash;
use crate::render::render;
use crate::sources::SourceLine;
use crate::structured_data::StructuredData;
use crate::{format, level, meters, moments, shelf};

/// The maximum number of charts of a set that are shown.
const MAX_SIBLINGS: usize = 30;

/// `GET /charts/{hash}`.
pub(crate) async fn chart(
    State(state): State<Arc<PagesState>>,
    PageHash(hash): PageHash,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let name = [b"chart ", hash.as_bytes().as_slice()].concat();
    let fill = async move |state: Arc<PagesState>| read(&state, hash).await;
    let body = state.read(&name, Resource::Chart, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// The page has no similar charts, no variants, no other charts of its set, or no comparison if only their
/// query fails.
async fn read(state: &PagesState, hash: NoteHash) -> Result<Option<String>, ReadError> {
    let Some(page) = state.store.chart_page(hash).await? else { return Ok(None) };
    let similar = state.store.similar_charts(hash).await.unwrap_or_default();
    let variants = state.store.chart_variants(&[VariantRequest { hash: Some(hash), variant: None }]).await;
    let variants = variants.unwrap_or_default().pop().unwrap_or_default();
    let home: Vec<_> = page.chartsets.first().map(|entry| entry.chartset.id).into_iter().collect();
    let siblings = state.store.charts_of_chartsets(&home).await.unwrap_or_default().pop();
    let siblings = siblings.map(|listed| listed.charts).unwrap_or_default();
    let known = state.store.distributions().await.unwrap_or_default();
    let template = ChartTemplate::new(&page, siblings, &similar, &variants, &known, state);
    render(&template).map(Some)
}

#[derive(Template)]
#[template(path = "chart.html", whitespace = "minimize")]
struct ChartTemplate {
    layout: Layout,
    hash: String,
    length_ms: u32,
    chart: ChartRow,
    curve: Curve,
    /// The first set that holds the chart, which has the best source.
    home: Option<SetLine>,
    /// The other sets that hold it.
    other_sets: Vec<SetLine>,
    /// The charts of the first set, this one among them; empty if it is the only one.
    siblings: Vec<ChartRow>,
    /// Whether these differ in their keys.
    has_many_keys: bool,
    /// The number of charts of the first set that are not listed.
    more_siblings: usize,
    /// The source of the first set that has one.
    download: Option<String>,
    /// How its difficulty compares; `None` if it has none.
    difficulty: Option<String>,
    histogram: Option<Histogram>,
    facts: Vec<Fact>,
    moments: Vec<Moment>,
    /// `None` until they are computed.
    patterns: Option<Vec<PatternPart>>,
    /// The address of a shelf with this chart.
    shelf: String,
    /// The markup of a frame with its preview; `None` without the URL of the site.
    embed: Option<String>,
    rox_size: String,
    note_hash_version: u32,
    /// The beginning of the note hash.
    short_hash: String,
    variants: Vec<VariantLine>,
    /// The number of variants that are not listed, if there are any.
    more_variants: Option<String>,
    sources: Vec<SourceLine>,
    similar: Vec<ChartRow>,
    /// The hashes and names of charts to compare it with: those of its set, then the similar ones.
    others: Vec<(String, String)>,
    /// The lists of easier and of harder charts with its most frequent pattern.
    neighbours: Option<[String; 2]>,
}

/// A chart with the same rows.
struct VariantLine {
    chart: ChartRow,
    /// Such as `1.1x`.
    rate: String,
    /// Whether no rate makes its times those of this chart.
    differs: bool,
    /// Its first source.
    source: Option<String>,
}

/// A chartset that holds the chart.
struct SetLine {
    href: String,
    title: String,
    artist: String,
    difficulty: String,
    creator: Option<CreatorLink>,
    download: Option<String>,
}

impl ChartTemplate {
    fn new(
        page: &ChartPage,
        siblings: Vec<ListedChart>,
        similar: &[SimilarChart],
        variants: &ChartVariants,
        known: &Distributions,
        state: &PagesState,
    ) -> Self {
        let (chart, numbers) = (&page.chart, &page.chart.numbers);
        let row = ChartRow::new(chart, page.curve.as_ref());
        let path = format!("/charts/{}", chart.hash);
        let title = format!(
            "{} [{}{}]",
            format::artist_and_title(&chart.artist, &row.title),
            row.keys_if_not_named(),
            row.difficulty
        );
        let mut layout = Layout {
            description: format!(
                "{}K chart of {} by {}{}: {} notes, {} BPM, {}, {} notes/s at most",
                row.keys,
                row.title,
                row.artist,
                format::charted_by(&chart.creator),
                row.notes,
                row.bpm.main,
                row.length,
                row.density_peak
            ),
            json: Some(format!("/api{path}")),
            ..Layout::new(title, path, state.settings.public_url.as_ref())
        };
        layout.structured_data = Some(StructuredData::chart(chart, &layout.title, &layout.url()));
        let mut sets: Vec<SetLine> = page.chartsets.iter().map(SetLine::new).collect();
        let download = sets.iter().find_map(|set| set.download.clone());
        let home = (!sets.is_empty()).then(|| sets.remove(0));
        let (siblings, more_siblings) = sibling_rows(siblings);
        let similar: Vec<_> =
            similar.iter().map(|similar| ChartRow::new(&similar.chart, similar.curve.as_ref())).collect();
        Self {
            layout,
            curve: page.curve.as_ref().map(|curve| Curve::figure(curve, numbers)).unwrap_or_default(),
            download,
            home,
            other_sets: sets,
            has_many_keys: siblings.iter().any(|sibling| sibling.keys != row.keys),
            more_siblings,
            short_hash: chart.hash.to_string().chars().take(8).collect(),
            hash: chart.hash.to_string(),
            length_ms: numbers.length_ms,
            difficulty: meters::difficulty(chart, known),
            histogram: Histogram::of_chart(known, chart),
            facts: meters::facts(chart, known),
            moments: page.curve.as_ref().map(|curve| moments::densest(curve, numbers)).unwrap_or_default(),
            patterns: chart.patterns.as_ref().map(meters::pattern_parts),
            shelf: shelf::path_of(chart.hash),
            embed: state.settings.public_url.as_ref().map(|url| frame(url.as_str(), chart.hash)),
            rox_size: format::bytes(chart.rox_bytes),
            note_hash_version: chart.note_hash_version,
            neighbours: neighbours(chart),
            others: others(&row, &siblings, &similar),
            chart: row,
            variants: variants.items.iter().map(VariantLine::new).collect(),
            more_variants: variants
                .total
                .checked_sub(variants.items.len() as u64)
                .filter(|more| *more > 0)
                .map(format::count),
            sources: SourceLine::all(&page.sources, &state.source_pages),
            siblings,
            similar,
        }
    }
}

/// The lists of charts with the same keys and at least half as much of its most frequent pattern that are
/// easier, the hardest first, and that are harder, the easiest first. `None` without a rating.
fn neighbours(chart: &Chart) -> Option<[String; 2]> {
    let rating = f64::from(chart.rating?.hundredths());
    let frequent = chart.patterns.as_ref().and_then(|patterns| {
        let pattern = Pattern::ALL.iter().copied().max_by_key(|pattern| patterns.share(*pattern))?;
        Some((pattern, patterns.share(pattern) / 2)).filter(|(_, percent)| *percent > 0)
    });
    let path = |rating: Bounds, direction| {
        let mut query = ListQuery::default();
        query.search.keys = [chart.numbers.keys].into_iter().collect();
        query.search.chart.rating = rating;
        query.search.chart.patterns = frequent.into_iter().collect();
        query.search.matches_one_chart = true;
        (query.search.sort, query.search.direction) = (Sort::Rating, direction);
        query.path()
    };
    let easier = Bounds { min: None, max: Some(rating - 1.0) };
    let harder = Bounds { min: Some(rating + 1.0), max: None };
    Some([path(easier, Direction::Descending), path(harder, Direction::Ascending)])
}

/// A frame with the preview of a chart.
fn frame(site: &str, hash: NoteHash) -> String {
    format!(
        "<iframe src=\"{site}/embed/charts/{hash}\" title=\"Chart preview\" width=\"480\" height=\"640\" loading=\"lazy\"></iframe>"
    )
}

/// The charts of a set of several, and the number of those that are left out.
fn sibling_rows(mut charts: Vec<ListedChart>) -> (Vec<ChartRow>, usize) {
    if charts.len() <= 1 {
        return (Vec::new(), 0);
    }
    charts.sort_by(|a, b| level::order(&a.chart, &b.chart));
    let rows = charts.iter().take(MAX_SIBLINGS).map(|listed| ChartRow::new(&listed.chart, None));
    (rows.collect(), charts.len().saturating_sub(MAX_SIBLINGS))
}

/// The hashes and names of these charts but the current one.
fn others(current: &ChartRow, siblings: &[ChartRow], similar: &[ChartRow]) -> Vec<(String, String)> {
    let hash = |row: &ChartRow| row.href.trim_start_matches("/charts/").to_owned();
    let of_set = siblings
        .iter()
        .filter(|row| row.href != current.href)
        .map(|row| (hash(row), format!("{}K {} {}", row.keys, row.difficulty, row.level.number)));
    let similar = similar
        .iter()
        .map(|row| (hash(row), format!("{} [{}] {}", row.title, row.difficulty, row.level.number)));
    of_set.chain(similar).collect()
}

impl VariantLine {
    fn new(variant: &ChartVariant) -> Self {
        let source = variant.known.sources.first();
        Self {
            chart: ChartRow::new(&variant.known.chart, None),
            rate: format!("{}x", format::decimal(variant.rate.unwrap_or(1.0), 3)),
            differs: variant.timing == Some(VariantTiming::Differs),
            source: source.map(|source| format!("{} {}", source_name(source.kind), source.reference)),
        }
    }
}

impl SetLine {
    fn new(entry: &ChartInChartset) -> Self {
        let set = &entry.chartset;
        Self {
            href: format!("/chartsets/{}", set.id),
            title: named(set.title.clone(), "Untitled"),
            artist: named(set.artist.clone(), "Unknown artist"),
            difficulty: named(entry.difficulty.clone(), "Unnamed"),
            creator: (!entry.creator.is_empty()).then(|| CreatorLink::new(&entry.creator)),
            download: set.source.as_ref().map(|_| format!("/go/chartset/{}", set.id)),
        }
    }
}
