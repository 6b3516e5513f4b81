//! A reference implementation of search: a linear scan, independent of query strings, SQL and Meilisearch.

use std::cmp::Ordering;
use std::collections::HashSet;

use chart_index_domain::search::{
    ChartsetPage, Direction, FilterableChart, IndexedChartset, ListItem, ListPosition, Sort, SortValue,
};
use chart_index_domain::text::{self, WordKind};
use chart_index_domain::{Chartset, Pattern, Rating};

use crate::random_catalogue::{Entry, thousandths};
use crate::random_queries::{RandomQuery, Range};

/// The page that every engine has to return.
pub(crate) fn expected(entries: &[Entry], query: &RandomQuery) -> ChartsetPage {
    let sets = entries.iter().map(|entry| &entry.indexed);
    let mut found: Vec<&IndexedChartset> = sets.filter(|set| matches(set, query)).collect();
    found.sort_by(|a, b| compare(a, b, query));
    let offset = usize::try_from(query.page.offset()).unwrap();
    let page: Vec<_> = found.iter().skip(offset).take(query.page.size() as usize).collect();
    let last = page.last().filter(|_| offset + page.len() < found.len());
    let next = last.map(|last| ListPosition { value: sort_value(last, query), id: last.chartset.id });
    let item = |set: &IndexedChartset| {
        let item = ListItem::new(&set.chartset).unwrap();
        let item = match set.ratings().filter(|_| query.includes_rating) {
            Some((min, max)) => item.with_ratings(min.hundredths(), max.hundredths()),
            None => item,
        };
        if query.includes_updated { item.with_updated(set.updated_at_ms) } else { item }
    };
    let items = page.iter().map(|set| item(set)).collect();
    ChartsetPage { items, total: found.len() as u64, next, position: None }
}

/// The number of chartsets with a chart in each bin of ratings that every engine has to return.
pub(crate) fn expected_histogram(entries: &[Entry], query: &RandomQuery) -> [u64; Rating::BINS] {
    let query = &RandomQuery { rating: Range::default(), ..query.clone() };
    let mut expected = [0; Rating::BINS];
    for entry in entries.iter().filter(|entry| matches(&entry.indexed, query)) {
        let charts = entry.indexed.charts.iter().filter(|chart| matches_chart(chart, query));
        let bins = charts.filter_map(|chart| Some(usize::from(chart.rating?.hundredths() / 25).min(25)));
        bins.collect::<HashSet<_>>().into_iter().for_each(|bin| expected[bin] += 1);
    }
    expected
}

fn sort_value(indexed: &IndexedChartset, query: &RandomQuery) -> SortValue {
    let set = &indexed.chartset;
    match (query.sort, &query.text) {
        (Sort::Relevance, Some(text)) => SortValue::Relevance(relevance(set, text), indexed.updated_at_ms),
        (Sort::Updated | Sort::Relevance, _) => SortValue::Integer(indexed.updated_at_ms),
        (Sort::Title, _) => SortValue::Name(text::sort_key(&set.title)),
        (Sort::Artist, _) => SortValue::Name(text::sort_key(&set.artist)),
        (Sort::Bpm, _) => SortValue::Number(set.bpm_max),
        (Sort::MainBpm, _) => SortValue::Number(indexed.bpm_main_max),
        (Sort::Length, _) => SortValue::Integer(set.length_max_ms.into()),
        (Sort::Density, _) => SortValue::Number(set.density_max),
        (Sort::Rating, _) => SortValue::Integer(greatest_rating(indexed).into()),
        (Sort::Notes, _) => SortValue::Integer(indexed.notes_max().into()),
    }
}

fn matches(indexed: &IndexedChartset, query: &RandomQuery) -> bool {
    let set = &indexed.chartset;
    let creator = text::fold_case(&set.creator);
    (query.keys.is_empty() || query.keys.iter().any(|keys| set.keys.contains(keys)))
        && query.source.is_none_or(|kind| set.source.as_ref().is_some_and(|source| source.kind == kind))
        && query.creator.as_ref().is_none_or(|part| creator.contains(&text::fold_case(part)))
        && !query.excluded_creators.iter().any(|part| creator.contains(&text::fold_case(part)))
        && query.tags.iter().all(|tag| has_tag(indexed, tag))
        && !query.excluded_tags.iter().any(|tag| has_tag(indexed, tag))
        && overlaps(query.bpm, thousandths(set.bpm_min), thousandths(set.bpm_max))
        && overlaps(query.length_ms, set.length_min_ms.into(), set.length_max_ms.into())
        && query.density_min.is_none_or(|density| thousandths(set.density_max) >= density)
        && (!has_chart_condition(query) || indexed.charts.iter().any(|chart| matches_chart(chart, query)))
        && query.text.as_ref().is_none_or(|text| matches_text(indexed, text))
}

fn has_tag(indexed: &IndexedChartset, tag: &str) -> bool {
    indexed.keywords.tags.iter().any(|other| text::fold(other) == text::fold(tag))
}

/// Whether one chart has to meet conditions together.
fn has_chart_condition(query: &RandomQuery) -> bool {
    let ranges = [query.rating, query.bpm_main, query.ln_share, query.notes];
    query.matches_one_chart
        || query.density_max.is_some()
        || !query.patterns.is_empty()
        || ranges.iter().any(|range| range.min.is_some() || range.max.is_some())
}

fn matches_chart(chart: &FilterableChart, query: &RandomQuery) -> bool {
    let share = |pattern: &Pattern| chart.row_shares.unwrap()[*pattern as usize];
    let density = thousandths(chart.density_peak);
    let of_chart = !query.matches_one_chart
        || overlaps(query.bpm, thousandths(chart.bpm_min), thousandths(chart.bpm_max))
            && contains(query.length_ms, chart.length_ms.into())
            && query.density_min.is_none_or(|min| density >= min);
    of_chart
        && (query.keys.is_empty() || query.keys.contains(&chart.keys))
        && query.density_max.is_none_or(|max| density <= max)
        && contains(query.bpm_main, thousandths(chart.bpm_main))
        && contains(query.ln_share, chart.ln_share.into())
        && contains(query.notes, chart.notes.into())
        && match chart.rating {
            Some(rating) => contains(query.rating, rating.hundredths().into()),
            None => query.rating.min.or(query.rating.max).is_none(),
        }
        && query.patterns.iter().all(|(pattern, least)| share(pattern) >= *least)
}

fn contains(range: Range, number: u64) -> bool {
    overlaps(range, number, number)
}

fn greatest_rating(indexed: &IndexedChartset) -> u16 {
    indexed.ratings().map_or(0, |(_, greatest)| greatest.hundredths())
}

fn overlaps(range: Range, low: u64, high: u64) -> bool {
    range.min.is_none_or(|min| high >= min) && range.max.is_none_or(|max| low <= max)
}

fn matches_text(indexed: &IndexedChartset, text: &str) -> bool {
    let (set, keywords) = (&indexed.chartset, &indexed.keywords);
    let names = [&set.title, &set.artist, &set.creator];
    let texts = names.into_iter().chain(&keywords.tags).chain(&keywords.romanised_names);
    let of_set: Vec<String> = texts.flat_map(|text| text::words(text)).collect();
    let of_query = text::words(text);
    !of_query.is_empty()
        && of_query.iter().enumerate().all(|(position, word)| {
            let last = position + 1 == of_query.len();
            let keys = text::hangul_keys(word);
            of_set.iter().any(|candidate| match WordKind::of(word) {
                WordKind::Spaced if last => candidate.starts_with(word),
                WordKind::Spaced => candidate == word,
                WordKind::Korean if last => {
                    text::suffixes(candidate).any(|suffix| text::hangul_keys(suffix).starts_with(&keys))
                }
                WordKind::Korean | WordKind::Unspaced => candidate.contains(word),
            })
        })
}

/// 2 if the text is the title, 1 if it is the beginning of the title.
fn relevance(set: &Chartset, text: &str) -> u8 {
    let (title, text) = (text::sort_key(&set.title), text::sort_key(text));
    u8::from(title.starts_with(&text)) + u8::from(title == text)
}

fn compare(a: &IndexedChartset, b: &IndexedChartset, query: &RandomQuery) -> Ordering {
    let updated = a.updated_at_ms.cmp(&b.updated_at_ms);
    let rating = greatest_rating(a).cmp(&greatest_rating(b));
    let notes = a.notes_max().cmp(&b.notes_max());
    let main_bpm = a.bpm_main_max.total_cmp(&b.bpm_main_max);
    let (a, b) = (&a.chartset, &b.chartset);
    let keys = match (query.sort, &query.text) {
        (Sort::Relevance, Some(text)) => relevance(a, text).cmp(&relevance(b, text)).then(updated),
        (Sort::Updated | Sort::Relevance, _) => updated,
        (Sort::Title, _) => text::sort_key(&a.title).cmp(&text::sort_key(&b.title)),
        (Sort::Artist, _) => text::sort_key(&a.artist).cmp(&text::sort_key(&b.artist)),
        (Sort::Bpm, _) => a.bpm_max.total_cmp(&b.bpm_max),
        (Sort::MainBpm, _) => main_bpm,
        (Sort::Length, _) => a.length_max_ms.cmp(&b.length_max_ms),
        (Sort::Density, _) => a.density_max.total_cmp(&b.density_max),
        (Sort::Rating, _) => rating,
        (Sort::Notes, _) => notes,
    };
    let keys = if query.direction == Direction::Descending { keys.reverse() } else { keys };
    keys.then(a.id.cmp(&b.id))
}
